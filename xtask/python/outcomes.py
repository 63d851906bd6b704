"""usage: outcomes.py JUNIT_XML: prints the name of each test of a report, a tab and what came of it."""
import re
import sys
import xml.etree.ElementTree as ET

for case in ET.parse(sys.argv[1]).iter("testcase"):
    kinds = [kind.tag for kind in case if kind.tag in ("failure", "error", "skipped")]
    # Names of temporary files differ from run to run.
    name = re.sub(r"\[[^\[\]]*/([^/\[\]]+)\]$", r"[\1]", f"{case.get('classname')}::{case.get('name')}")
    print(name.replace("\t", " ").replace("\n", " "), kinds[0] if kinds else "passed", sep="\t")
