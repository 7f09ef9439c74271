"""Wire formats: chat requests and completions, tokens, candidate menus."""
