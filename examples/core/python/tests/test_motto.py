import unittest

from example_core import MOTTO


class MottoTest(unittest.TestCase):
    def test_is_said(self) -> None:
        self.assertTrue(MOTTO)
