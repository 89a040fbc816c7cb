"""The check of a release finds each file that does not fit its version."""
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_release  # noqa: E402


class Releases(unittest.TestCase):
    FILES = {
        "CMakeLists.txt": "project(onebit VERSION 1.2.3 LANGUAGES CXX)",
        "CITATION.cff": "version: 1.2.3\n",
        "python/onebit/_core.pyi": "version: str = '1.2.3'\n",
        "docs/building.md": "find_package(onebit 1.2 REQUIRED)",
        "tests/package/consumer/CMakeLists.txt": "find_package(onebit 1.2 REQUIRED)",
        "CHANGELOG.md": "# Changes\n\n## 1.2.3 (2030-01-31)\n",
    }

    def problems(self, **changed):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in (self.FILES | changed).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_release.problems_of(root)

    def test_a_version_that_all_files_name(self):
        self.assertEqual(self.problems(), [])

    def test_files_that_name_another_version(self):
        self.assertIn("CITATION.cff", self.problems(**{"CITATION.cff": "version: 1.2.2\n"})[0])
        self.assertIn("_core.pyi", self.problems(
            **{"python/onebit/_core.pyi": "version: str = '1.2.2'\n"})[0])
        self.assertIn("building.md", self.problems(
            **{"docs/building.md": "find_package(onebit 1.1 REQUIRED)"})[0])

    def test_the_change_log(self):
        self.assertIn("does not begin", self.problems(**{"CHANGELOG.md": "## 1.2.2 (2030-01-31)"})[0])
        self.assertIn("day of publication",
                      self.problems(**{"CHANGELOG.md": "## 1.2.3 (not published)"})[0])

    def test_the_projects_own_files_agree(self):
        problems = check_release.problems_of(ROOT)
        self.assertEqual([p for p in problems if p.split()[0] in check_release.PLACES], [])


if __name__ == "__main__":
    unittest.main()
