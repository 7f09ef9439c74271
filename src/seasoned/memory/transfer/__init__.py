"""Transfer: export, import and merge of namespaces."""
