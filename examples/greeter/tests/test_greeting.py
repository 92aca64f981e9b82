import unittest

import greeter


class Greeting(unittest.TestCase):
    def test_names_the_node(self):
        self.assertEqual(greeter.greeting("alpha\n"), f"{greeter.WORD} from alpha, {greeter.MOTTO}")

    def test_the_word_is_a_word(self):
        self.assertTrue(greeter.WORD.isalpha(), greeter.WORD)

    def test_refuses_a_node_without_a_name(self):
        with self.assertRaises(ValueError):
            greeter.greeting(" ")


if __name__ == "__main__":
    unittest.main()
