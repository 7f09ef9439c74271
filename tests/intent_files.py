"""Labelled sentences in the form of CLINC150, made up."""

import json

WORDS = {
    "bank": {"pay_bill": "pay bill rent due", "balance": "balance account money left"},
    "travel": {"book_flight": "book flight seat plane", "visa": "visa passport border stamp"},
    "home": {"lights": "lights lamp dim bright", "timer": "timer minutes ring oven"},
}


def write_intents(folder, sentences=20):
    """Write the two files: per intent as many sentences, with words of the intent and a number that none shares."""
    domains = {domain: list(intents) for domain, intents in WORDS.items()}
    labelled = [
        [f"please {words.split()[i % 4]} {words.split()[(i + 1) % 4]} number {intent}{i}", intent]
        for intents in WORDS.values()
        for intent, words in intents.items()
        for i in range(sentences)
    ]
    splits = {"train": labelled[::2], "test": labelled[1::2], "oos_test": [["what is love", "oos"]]}
    (folder / "domains.json").write_text(json.dumps(domains))
    (folder / "data_full.json").write_text(json.dumps(splits))
    return str(folder)
