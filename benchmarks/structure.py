"""The structure of the source: `python benchmarks/structure.py [CHECKOUT ...]`, one column per checkout."""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

FIELD_GERUNDS = {  # the field's own words; any other module named by a gerund is named by an act
    *("embedding", "embeddings", "interning", "parsing", "pending", "pruning", "ranking", "reading", "rendering"),
    *("routing", "sampling", "scheduling", "testing", "training", "writing", "encoding", "indexing", "logging"),
}
CLAUSE = re.compile(r"\b(what|who|whoever|whose|that which|whatever)\b", re.IGNORECASE)
OFF = re.compile(r"#\s*fmt:\s*(?:off|skip)")
SENTENCE = re.compile(r"[^.!?]+[.!?](?=\s|$)")


def modules_of(root):
    """Return path and syntax tree of every module of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.py"))}


def name_of(path, root):
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree, name, is_package, names):
    """Return the modules of the package that a module imports, at any place in it."""
    package = name if is_package else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in names else base)
    return {one for one in found if one in names and one != name}


def cycles_of(graph):
    """Return the strongly connected components of more than one module (Tarjan 1972)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            if len(component) > 1:
                found.append(component)

    for node in graph:
        if node not in index:
            visit(node)
    return found


def measure(checkout):
    """Return the measures of one checkout, by name."""
    root = checkout / "src" / "seasoned"
    trees = modules_of(root)
    texts = {path: path.read_text(encoding="utf-8") for path in trees}
    names = {name_of(path, root) for path in trees}
    stems = defaultdict(set)
    for path in trees:
        if path.stem not in {"__init__", "__main__"}:
            stems[path.stem].add(path.parent)
    defined, signatures, sentences, opens = defaultdict(set), Counter(), [], 0
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                defined[node.name].add(path)
        opens += (ast.get_docstring(tree) or "").split(" ")[0] in {"What", "How", "Which", "Whose", "Who", "Whether"}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                signatures[f"{path.relative_to(root)}:{node.name}"] = len(
                    [one for one in own if one not in {"self", "cls"}]
                )
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = re.sub(r">>>.*|`[^`]*`", "", ast.get_docstring(node) or "")
                sentences += SENTENCE.findall(text)
    raises = sum(
        isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise)
        for tree in trees.values()
        for node in ast.walk(tree)
    )
    graph = {
        # A package's `__init__` re-exports its modules; importing one of them runs it first, which is no cycle.
        name_of(path, root): {
            one
            for one in imports_of(tree, name_of(path, root), path.name == "__init__.py", names)
            if not (name_of(path, root) + ".").startswith(one + ".")
        }
        if path.name != "__init__.py"
        else set()
        for path, tree in trees.items()
    }
    files = Counter(path.parent for path in trees if path.stem not in {"__init__", "__main__"})
    clauses = sum(bool(CLAUSE.search(one)) for one in sentences)
    largest = max(signatures, key=lambda key: signatures[key])
    others = [
        path.read_text(encoding="utf-8")
        for folder in ("tests", "benchmarks", "examples", "docs")
        for path in (checkout / folder).rglob("*.py")
    ]
    return {
        "files": len(trees),
        "lines": sum(text.count("\n") for text in texts.values()),
        "largest file, lines": max(text.count("\n") for text in texts.values()),
        "files in the largest folder": max(files.values()),
        "folders of more than 16 files": sum(count > 16 for count in files.values()),
        "modules named by a bare gerund": sum(
            stem.endswith("ing") and "_" not in stem and stem not in FIELD_GERUNDS
            for stem in stems
            for _ in stems[stem]
        ),
        "stems in several folders": sum(len(where) > 1 for where in stems.values()),
        "public names defined in several files": sum(len(where) > 1 for where in defined.values()),
        "import cycles, any kind": len(cycles_of(graph)),
        "largest signature": f"{signatures[largest]} ({largest.rpartition(':')[2]})",
        "formatter switched off, in all Python files": sum(
            len(OFF.findall(text)) for text in (*texts.values(), *others)
        ),
        "`if ...: raise` blocks": raises,
        "module docstrings that open with What/How/...": opens,
        "docstring sentences with a what/who clause": f"{clauses} of {len(sentences)}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="CHECKOUT", help="default: this one")
    found = [measure(checkout) for checkout in parser.parse_args().checkouts or [Path(__file__).parents[1]]]
    for name in found[0]:
        print(f"{name:<46}", *(f"{one[name]!s:>32}" for one in found))


if __name__ == "__main__":
    main()
