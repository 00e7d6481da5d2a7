#!/usr/bin/env python3
"""Runs foreign programs against a node and a node against foreign forwarders.

Every case is a function named for what it shows; a failed one prints what the programs said.
Only the standard library is used here; the foreign libraries live in the programs it starts.
"""
import argparse
import shutil
import sys
import tempfile
import time

import forwarder_cases
import ndnts_cases
import python_cases
from programs import Failed, Setup

GROUPS = {'python': python_cases.CASES, 'ndnts': ndnts_cases.CASES, 'foreign': forwarder_cases.CASES}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('group', choices=[*GROUPS, 'all'])
    parser.add_argument('--onym', required=True)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--only', help='run the cases whose name contains this')
    arguments = parser.parse_args()
    groups = list(GROUPS) if arguments.group == 'all' else [arguments.group]
    passed = failed = skipped = 0
    for needs, case in (case for group in groups for case in GROUPS[group]):
        if arguments.only and arguments.only not in case.__name__:
            continue
        if needs and not shutil.which(needs):
            print(f'skipped  {case.__name__} ({needs} is not on PATH)', flush=True)
            skipped += 1
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Setup(arguments, folder))
            except Failed as reason:
                failed += 1
                print(f'FAILED   {case.__name__}\n{reason}', flush=True)
            else:
                passed += 1
                print(f'passed   {case.__name__} ({time.monotonic() - started:.1f} s)', flush=True)
    print(f'interop: {passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
