"""Schemas as python-ndn compiles them: schemas.py CASES SEED COUNT FOLDER

Writes FOLDER/N.lvs, and FOLDER/N.tlv when python-ndn compiles it: the texts of CASES (JSON), then
COUNT random ones from SEED.
"""
import json
import random
import sys
from pathlib import Path

from ndn.app_support.light_versec import compile_lvs

LITERALS = ['"a"', '"b"', '"c"', '"v=1"', '"32=k"', '"%41%2F"', '""', '"seg=300"']
VARIABLES = ['x', 'y', 'z', '_', '_t', '_u']


def option(dice, named):
    kind = dice.random()
    if kind < 0.6:
        return dice.choice(LITERALS)
    if kind < 0.8 and named:
        return dice.choice(named)
    arguments = ', '.join(dice.choice(LITERALS + named) for _ in range(dice.randrange(3)))
    return f'${dice.choice(["eq", "eq_type", "f"])}({arguments})'


def constraints(dice, name):
    own = [part for part in name if part in VARIABLES] or VARIABLES
    named = [part for part in name if part in VARIABLES[:3]]
    sets = []
    for _ in range(dice.choice([1, 1, 2])):
        terms = [f'{dice.choice(own)}: ' + ' | '.join(option(dice, named) for _ in range(dice.choice([1, 1, 2])))
                 for _ in range(dice.choice([1, 2, 3]))]
        sets.append('{ ' + ', '.join(terms) + ' }')
    return ' & ' + ' | '.join(sets)


def schema(dice):
    """Rules that inline earlier ones; sometimes one too many, which is refused on both sides."""
    ids = [f'#{dice.choice("_rstk")}{number}' for number in range(dice.randrange(1, 7))]
    lines = []
    for at, rule in enumerate(ids):
        if at and dice.random() < 0.15:
            rule = ids[at - 1]
        name = []
        for _ in range(dice.randrange(1, 5)):
            inner = [other for other in ids[at + 1:] if not other.startswith('#_')]
            if inner and dice.random() < 0.25:
                name.append(dice.choice(inner))
            else:
                name.append(dice.choice(LITERALS + VARIABLES))
        line = f'{rule}: {"/".join(name)}'
        if dice.random() < (0.5 if set(name) & set(VARIABLES) else 0.05):
            line += constraints(dice, name)
        if dice.random() < 0.6:
            keys = [other for other in ids if not other.startswith('#_')] or ids
            line += ' <= ' + ' | '.join(dice.choice(keys) for _ in range(dice.choice([1, 1, 2])))
        lines.append(line)
    dice.shuffle(lines)
    return '\n'.join(lines) + '\n'


def main(cases, seed, count, folder):
    dice = random.Random(int(seed))
    texts = [case['text'] for case in json.loads(Path(cases).read_text())]
    texts += [schema(dice) for _ in range(int(count))]
    compiled = 0
    for number, text in enumerate(texts):
        (Path(folder) / f'{number}.lvs').write_text(text)
        try:
            model = bytes(compile_lvs(text).encode())
        except Exception:  # Each of its errors is a refusal; ours must refuse as well.
            continue
        (Path(folder) / f'{number}.tlv').write_bytes(model)
        compiled += 1
    print(f'{len(texts)} schemas, {compiled} compiled')


main(*sys.argv[1:])
