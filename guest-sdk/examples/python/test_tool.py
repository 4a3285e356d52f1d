"""Unit tests, with any Python: `PYTHONPATH=sdk/python/src python3 -m unittest`."""

import unittest

from tool import count


class Count(unittest.TestCase):
    def test_words_are_separated_by_white_space(self):
        self.assertEqual(count(" a bell\n jar "), 3)


if __name__ == "__main__":
    unittest.main()
