"""Reads C++ sources for the checks: lists files, blanks comments and strings, finds functions."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP_SUFFIXES = (".h", ".cc", ".cu")
CPP_FOLDERS = ("onebit", "tests", "bench", "examples")


def tree_files(root=ROOT):
    """Returns the paths, relative to root, of every file that git tracks or does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
        names = [Path(name) for name in listed if name]
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        names = [path.relative_to(root) for path in root.rglob("*")]
        names = [path for path in names if not path.parts[0].startswith((".", "build", "runs"))]
    return sorted({path for path in names if (root / path).is_file()})


def cpp_files(root=ROOT):
    return [path for path in tree_files(root)
            if path.suffix in CPP_SUFFIXES and path.parts[0] in CPP_FOLDERS]


_LITERAL = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<tag>[^(\s\\)]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)


def _blank(text):
    return "".join(character if character == "\n" else " " for character in text)


def without_comments_and_strings(text):
    """Returns the text with comments and the contents of literals blanked, of the same length."""
    def replace(match):
        token = match.group(0)
        if token.startswith("/"):
            return _blank(token)
        return token[0] + _blank(token[1:-1]) + token[-1]
    return _LITERAL.sub(replace, text)


def without_comments(text):
    """Blanks comments but keeps literals, which name the files of #include."""
    return _LITERAL.sub(
        lambda match: _blank(match.group(0)) if match.group(0).startswith("/") else match.group(0),
        text)


def without_preprocessor(text):
    lines = text.split("\n")
    continued = False
    for number, line in enumerate(lines):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.rstrip().endswith("\\")
        if directive:
            lines[number] = ""
    return "\n".join(lines)


_SCOPE = re.compile(r"\b(namespace|extern)\b[^()]*$")
_TYPE = re.compile(r"(^|\s)(class|struct|union|enum)\b(?![^<]*>\s*[\w:&*]+\s*\()[^()]*$")


def _kind_of_brace(statement, outer):
    """Returns what a brace after `statement` opens: scope, type, function, value or block."""
    if outer not in ("scope", "type"):
        return "block"
    if _SCOPE.search(statement):
        return "scope"
    head = statement.rstrip()
    if "(" in head:
        # `Type::Type(...) : member_{value}` opens a value. The body comes later.
        initialisers = re.search(r"\)[^()]*[^:]:[^:]", head)
        if initialisers and re.search(r"[\w>]$", head) and not head.endswith(")"):
            return "value"
        return "function"
    if _TYPE.search(statement):
        return "type"
    return "value"


def functions(text):
    """Returns (first line, last line, name) of every function. Lambdas belong to their function."""
    code = without_preprocessor(without_comments_and_strings(text))
    stack = ["scope"]
    start, opened, found, line = 0, [], [], 1
    first_line = None
    for at, character in enumerate(code):
        if character == "\n":
            line += 1
        elif not character.isspace() and first_line is None and character not in "{};":
            first_line = line
        if character == "{":
            statement = code[start:at]
            kind = _kind_of_brace(statement, stack[-1])
            opened.append((kind, first_line or line, statement))
            stack.append("scope" if kind == "scope" else kind)
            if kind in ("scope", "type", "function"):
                start, first_line = at + 1, None
        elif character == "}" and opened:
            kind, began, statement = opened.pop()
            stack.pop()
            if kind == "function":
                name = re.search(r"([\w:~]+|operator\W+)\s*\(", statement)
                found.append((began, line, name.group(1) if name else "?"))
            if kind != "value" and stack[-1] in ("scope", "type"):
                start, first_line = at + 1, None
        elif character == ";" and stack[-1] in ("scope", "type"):
            start, first_line = at + 1, None
    return found


class Report:
    """Collects problems as `path:line: message`, prints them and returns the exit status."""

    def __init__(self, name):
        self.name, self.problems = name, []

    def add(self, path, line, message):
        self.problems.append((str(path), line, message))

    def finish(self, checked):
        for path, line, message in sorted(set(self.problems)):
            print(f"{path}:{line}: {message}")
        verdict = f"{len(set(self.problems))} problems" if self.problems else "no problem"
        print(f"{self.name}: {checked} files, {verdict}")
        return 1 if self.problems else 0
