"""``pytest --of NAME`` finds the tests of a name by marker, by use, through helpers and by the case of a table."""

import pytest

pytest_plugins = ("pytester",)

CONFTEST = """
pytest_plugins = ("of_name",)

def pytest_configure(config):
    config.addinivalue_line("markers", "oracle(*names): as in the book")
"""

TESTS = """
import pytest

ClickLog = clipped = ips = naive = print

CASES = {"of ips": lambda: ips(None), "of naive": lambda: naive(None)}


def helper(log):
    return deeper(log)


def deeper(log):
    return ips(log, lam=[])


@pytest.fixture
def estimate():
    return clipped(1)


@pytest.mark.oracle("estimators.ips")
def test_marked():
    ...


@pytest.mark.oracle("logs.ClickLog.weights", "estimators.naive")
def test_marked_for_others():
    ips(ClickLog().weights)


def test_uses_it():
    ips(None)


def test_uses_it_through_helpers():
    helper(None)


def test_uses_a_fixture(estimate):
    ...


@pytest.mark.parametrize("case", CASES)
def test_table(case):
    CASES[case]()


@pytest.mark.parametrize("function", [clipped, naive], ids=["clipped", "naive"])
def test_list(function):
    function(None)


def test_weights_of_something_else():
    something.weights
"""

OF_IPS = {"test_marked", "test_uses_it", "test_uses_it_through_helpers", "test_table[of ips]"}
OF_NAIVE = {"test_marked_for_others", "test_table[of naive]", "test_list[clipped]", "test_list[naive]"}


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_some=TESTS)
    return pytester


def found(suite: pytest.Pytester, *names: str) -> set[str]:
    options = [option for name in names for option in ("--of", name)]
    result = suite.runpytest_inprocess("--collect-only", "--quiet", *options)
    assert result.ret == 0
    return {line.partition("::")[2] for line in result.outlines if "::" in line}


def test_without_a_name_all_tests_run(suite: pytest.Pytester) -> None:
    assert len(found(suite)) == 10


@pytest.mark.parametrize(
    ("names", "tests"),
    [
        (["ips"], OF_IPS),
        (["estimators.ips"], OF_IPS),
        (["naive"], OF_NAIVE),
        (["ips", "naive"], OF_IPS | OF_NAIVE),
        (["clipped"], {"test_uses_a_fixture", "test_list[clipped]", "test_list[naive]"}),
        (["ClickLog"], {"test_marked_for_others"}),
        (["ClickLog.weights"], {"test_marked_for_others"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_tests_of_a_name(suite: pytest.Pytester, names: list[str], tests: set[str]) -> None:
    assert found(suite, *names) == tests


def test_a_name_that_does_not_exist(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("--of", "ipss")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--of ipss: there is no public name 'ipss'; near it are ips*"])
