from plainmind.text.terms import letters_without_spaces


def test_letters_of_scripts_without_spaces_are_counted():
    assert letters_without_spaces("東京 Tower 2, 서울!") == 4
