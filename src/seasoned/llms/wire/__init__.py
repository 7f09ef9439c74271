"""Wire formats: chat requests and answers, tokens, candidate menus."""
