"""The check of options finds settings that are described twice, which the tests plant in a tree."""
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_options  # noqa: E402


class Options(unittest.TestCase):
    KEYS = ("## `data`\n\n| key | for | value | default | |\n|---|---|---|---|---|\n"
            "| `max_words` | `classify`, `tag` | a whole number | `3` | words |\n"
            "| `stride` | `squad` | a whole number | `3` | tokens |\n\n"
            "## `tag`, task `tag`\n\n| key | value | default | |\n|---|---|---|---|\n"
            "| `text` | offsets or words | | how |\n\n")

    def check(self, source, place="onebit/apps/tag/a_command.cc"):
        """Returns (exit status, printed text) of the check of a command with this source."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("docs/recipe.md", self.KEYS),
                               ("onebit/training/commands/options.h",
                                'inline constexpr const char* kMaxWords = "--max-words";\n'),
                               (place, source)):
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_text(text)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                status = check_options.main(Path(folder))
            return status, printed.getvalue()

    def test_an_option_for_a_key_is_declared_as_one(self):
        status, printed = self.check(
            'keys.add("--max-words,--words", "data.max_words");\n'
            'keys.add_flag("--no-text", "tag.text", "words");\n'
            'command.add_option("--stride", given->stride, "of another task");\n')
        self.assertEqual(status, 0, printed)

    def test_a_setting_that_is_described_twice(self):
        status, printed = self.check('\ncommand.add_option(\n    "--words,--max-words", words, "W");')
        self.assertEqual(status, 1, printed)
        self.assertIn("a_command.cc:2: --max-words is a key of recipes, too", printed)
        status, printed = self.check('command.add_flag("--no-text", given->text, "T");')
        self.assertIn("--no-text is a key of recipes, too", printed)

    def test_shared_floors_know_the_keys_of_every_task(self):
        source = 'command.add_option("--stride", given->stride, "S");'
        for place in ("onebit/program/serve/a_command.cc", "onebit/training/finetune/a.cc"):
            status, printed = self.check(source, place)
            self.assertEqual(status, 1, printed)
            self.assertIn("--stride is a key of recipes, too", printed)

    def test_the_name_of_an_option_may_be_a_constant(self):
        status, printed = self.check("command.add_option(commands::kMaxWords, words, 3);")
        self.assertEqual(status, 1, printed)
        self.assertIn("--max-words is a key of recipes, too", printed)
        status, printed = self.check('keys.add(commands::kMaxWords, "data.max_words");')
        self.assertEqual(status, 0, printed)

    def test_an_option_has_the_name_of_its_key(self):
        status, printed = self.check('keys.add("--words", "data.max_words");')
        self.assertEqual(status, 1, printed)
        self.assertIn("give it the name --max-words, too", printed)


if __name__ == "__main__":
    unittest.main()
