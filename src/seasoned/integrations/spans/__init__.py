"""Readers of telemetry: spans and log records of OpenTelemetry and its relatives, and Langfuse exports."""
