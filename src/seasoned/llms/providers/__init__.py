"""Model providers: llama.cpp, OpenAI-compatible endpoints, LiteLLM, transformers, a scripted model."""
