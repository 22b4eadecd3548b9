"""Names of a model's classes as reports show them."""

from __future__ import annotations

from streamwatch.core.estimators.names import Classes
from streamwatch.core.records.events import OTHER


def test_names_are_those_of_now_and_one_object_until_there_is_a_new_class():
    classes = Classes(3)
    assert classes.names(folded=False) == ()
    for count, name in enumerate(("b", "a", OTHER), 1):
        before = classes.names(folded=False), classes.names(folded=True)
        assert classes[name] == count - 1
        assert classes.names(folded=False) == tuple(classes)
        assert classes.names(folded=False)[-1] == name
        assert classes.names(folded=True)[:count] == tuple(classes)
        assert (classes.names(folded=False), classes.names(folded=True)) != before
    assert classes["beyond"] == 3
    for folded, names in ((False, ("b", "a", OTHER)), (True, ("b", "a", OTHER, OTHER + "_"))):
        assert classes.names(folded) == names
        assert classes.names(folded) is classes.names(folded)
