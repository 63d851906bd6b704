"""usage: outcomes.py JUNIT_XML: prints the name of each test of a report, a tab and what came of it."""
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter

seen = Counter()
for case in ET.parse(sys.argv[1]).iter("testcase"):
    kinds = [kind.tag for kind in case if kind.tag in ("failure", "error", "skipped")]
    # Names of temporary files differ from run to run.
    name = re.sub(r"\[[^\[\]]*/([^/\[\]]+)\]$", r"[\1]", f"{case.get('classname')}::{case.get('name')}")
    name = name.replace("\t", " ").replace("\n", " ")
    seen[name] += 1
    # Tests that have the same name without them come in the same order.
    name += f" ({seen[name]})" if seen[name] > 1 else ""
    print(name, kinds[0] if kinds else "passed", sep="\t")
