"""What the runner of the manual takes for true, and what it does not."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import run

HERE = Path(__file__).resolve().parent


class Matching(unittest.TestCase):
    def test_dots_stand_for_anything_within_a_line_and_alone_for_lines(self) -> None:
        for expected, printed, holds in [
            ([], [], True),
            ([], ["x"], False),
            (["a … c"], ["a b c"], True),
            (["a … c"], ["a b c d"], False),
            (["a … c"], ["a b", "c"], False),
            (["…", "ready"], ["1", "2", "ready"], True),
            (["…", "ready"], ["ready"], True),
            (["…", "ready"], ["ready", "not"], False),
            (["a(b)*"], ["a(b)*"], True),
            (["a(b)*"], ["abbb"], False),
        ]:
            with self.subTest(expected=expected, printed=printed):
                self.assertEqual(run.matches(expected, printed), holds)

    def test_a_block_that_is_not_closed_or_has_unknown_options_is_refused(self) -> None:
        for text in ["```console\n$ true\n", "```console,hots=b\n```\n"]:
            with self.assertRaises(run.Untrue):
                run.blocks(text)

    def test_lines_after_a_greater_sign_continue_a_command_and_not_its_output(self) -> None:
        block = run.blocks("```console\n$ cat <<E\n> one\n> E\none\n> two\n```\n")[0]
        self.assertEqual([c.text for c in block.commands()], ["cat <<E\none\nE"])
        self.assertEqual(block.commands()[0].expected, ["one", "> two"])


@unittest.skipUnless(run.namespaces(), "namespaces cannot be made here")
class Pages(unittest.TestCase):
    def page(self, text: str) -> subprocess.CompletedProcess[str]:
        with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
            page.write(text)
            page.flush()
            words = [sys.executable, HERE / "run.py", "/bin/true", page.name]
            return subprocess.run(words, capture_output=True, text=True)

    def test_what_is_true_passes(self) -> None:
        text = """
```text,file=x,host=b
of b
```
```console,host=b
$ cat x
of b
$ sleep 60 &
```
```console,exit=3
$ (</dev/tcp/192.0.2.2/9); cd /tmp
…Connection refused
…
$ pwd; (exit 3)
/tmp
```
"""
        done = self.page(text)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("4 commands on 2 machines", done.stdout)

    def test_wrong_output_wrong_exit_code_and_commands_that_nobody_runs_fail(self) -> None:
        for block, words in [
            ("```console\n$ echo a\nb\n```", "prints something else"),
            ("```console\n$ false\n```", "ends with 1 and not 0"),
            ("```console,exit=1\n$ true\n```", "ends with 0 and not 1"),
            ("```sh\ntrue\n```", "is ```console"),
            ("```console,in=tests/manual/test_run.py\n$ no" + "body runs this\n```", "does not run"),
        ]:
            with self.subTest(block=block):
                done = self.page(block + "\n")
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
