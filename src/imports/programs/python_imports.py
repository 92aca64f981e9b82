"""Says what Python files import, by Python's own parser. It reads the files and runs nothing of them.

Paths come in on standard input, each ended by a NUL and relative to the directory that is given; what goes out is a line of JSON,
first with the names of the standard library, then one for each file as soon as it is read: whoever reads them
knows which file it was that ended this program.
"""

import ast
import json
import os
import signal
import stat
import sys
import warnings

MOST_READ_BYTES = 64 << 20
# A parse takes some hundred times the size of its file.
MOST_BYTES = 4 << 20
MOST_MEMORY = 2 << 30
# Of the processor and not of the clock: a loaded machine finds the same.
SECONDS_A_FILE = 20

COMPUTED = "a name that only a run could tell is imported"


def main():
    warnings.simplefilter("ignore")
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass
    say({"standard": sorted(getattr(sys, "stdlib_module_names", sys.builtin_module_names))})
    os.chdir(sys.argv[1])
    for path in sys.stdin.buffer.read().split(b"\0")[:-1]:
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_A_FILE)
        say(look(path))


def say(what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def look(path):
    try:
        source = read(path)
    except OSError as error:
        return trouble(1, "it cannot be read: " + (error.strerror or "unknown"))
    # Not only for speed: a large table of data holds no import. Other characters may stand for these, and a cookie for others.
    if source.isascii() and b"import" not in source and b"coding" not in source:
        return {}
    if len(source) > MOST_BYTES:
        return trouble(1, "it is larger than 4 MiB")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return trouble(error.lineno or 1, error.msg or "invalid syntax")
    except ValueError as error:
        return trouble(1, str(error))
    except (MemoryError, RecursionError):
        return trouble(1, "it is nested too deeply, or too much, to be parsed")
    try:
        reader = Reader(tree)
    except MemoryError:
        return trouble(1, "it is too much to be read")
    return {"imports": reader.imports, "computed": reader.computed}


def trouble(line, reason):
    return {"trouble": {"line": max(line, 1), "reason": reason}}


# No link is followed and no pipe waited for.
def read(path):
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise OSError(0, "no file")
        if about.st_size > MOST_READ_BYTES:
            raise OSError(0, "larger than 64 MiB")
        return file.read()


class Reader:
    """Each import as [module, level, name, line]: `from ..a import b` is ["a", 2, "b", line], `import a.b` ["a.b", 0, null, line]."""

    def __init__(self, tree):
        self.imports = []
        self.computed = []
        # By what names this file calls what imports by text.
        self.libraries = set()
        self.functions = {"__import__"}
        calls = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    self.add(one.name, 0, None, node, one)
                    if one.name in ("importlib", "builtins") or (one.name.startswith("importlib.") and one.asname is None):
                        self.libraries.add(one.asname or one.name.partition(".")[0])
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    self.add(node.module or "", node.level, one.name, node, one)
                    if node.level == 0 and (node.module, one.name) in KNOWN:
                        self.functions.add(one.asname or one.name)
            elif isinstance(node, ast.Call):
                calls.append(node)
        for call in calls:
            if self.is_import(call.func):
                self.add_call(call)

    def add(self, module, level, name, node, alias):
        self.imports.append([module, level, name, getattr(alias, "lineno", node.lineno)])

    def is_import(self, function):
        if isinstance(function, ast.Name):
            return function.id in self.functions
        return (
            isinstance(function, ast.Attribute)
            and function.attr in ("import_module", "__import__")
            and isinstance(function.value, ast.Name)
            and function.value.id in self.libraries
        )

    def add_call(self, call):
        given = {word.arg: word.value for word in call.keywords}
        asked = literal(call.args[0] if call.args else given.get("name"))
        if asked is None:
            self.computed.append([call.lineno, COMPUTED])
            return
        rest = asked.lstrip(".")
        level = len(asked) - len(rest)
        package = literal(call.args[1] if len(call.args) > 1 else given.get("package"))
        if level > 0 and package is not None:
            # One dot is the package itself, as in its own files.
            parts = package.split(".")
            kept = parts[: len(parts) - level + 1]
            rest = ".".join([*kept, rest] if rest else kept)
            level = 0
        self.imports.append([rest, level, None, call.lineno])


KNOWN = {("importlib", "import_module"), ("importlib", "__import__"), ("builtins", "__import__")}


def literal(node):
    """A text that stands there as it is, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and all(isinstance(part, ast.Constant) for part in node.values):
        return "".join(part.value for part in node.values)
    return None


main()
