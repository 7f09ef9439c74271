"""The parts that the `Memory` facade is composed of."""
