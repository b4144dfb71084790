"""What a CI system reads of the gates: JUnit XML and GitHub's annotations."""

from collections.abc import Sequence

from ba_eval.gate import Finding
from ba_eval.tables.escape import plain


def junit(run: str, findings: Sequence[Finding]) -> bytes:
    """The findings as a JUnit test suite, one test case a model and gate."""
    from xml.etree import ElementTree

    failures = sum(not finding.passed for finding in findings)
    counts = {"tests": str(len(findings)), "failures": str(failures), "errors": "0", "skipped": "0"}
    root = ElementTree.Element("testsuites", {"name": "ba-eval gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": plain(run), **counts})
    for finding in findings:
        names = {"classname": plain(finding.model), "name": plain(finding.gate)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if finding.passed:
            ElementTree.SubElement(case, "system-out").text = plain(finding.message)
        else:
            failure = ElementTree.SubElement(case, "failure", {"message": plain(finding.message)})
            failure.text = plain(f"{finding.model}: {finding.gate}: {finding.message}", limit=1000)
    ElementTree.indent(root)
    body: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def annotations(findings: Sequence[Finding]) -> list[str]:
    """GitHub workflow commands, one error for each gate that failed."""
    return [
        f"::error title={_property(f'{finding.model}: {finding.gate}')}::{_data(finding.message)}"
        for finding in findings
        if not finding.passed
    ]


def _data(text: str) -> str:
    return plain(text, limit=1000).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
