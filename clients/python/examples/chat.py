"""A chat without a server, also with `onym chat`: python3 examples/chat.py /example/chat /alice"""

import asyncio
import sys

from onym.sync import Face, Group


async def show(group: Group) -> None:
    async for heard in group.publications():
        text = heard.content.decode(errors="replace")
        print(f"{heard.node}: {''.join(c if c.isprintable() else '?' for c in text)}", flush=True)


async def main(group_name: str, node: str) -> None:
    face = await Face.open()
    async with await Group.join(face, group_name, node) as group:
        showing = asyncio.create_task(show(group))
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            group.publish(line.rstrip("\n").encode())
        await asyncio.sleep(2)
        showing.cancel()
    await face.close()


asyncio.run(main(sys.argv[1], sys.argv[2]))
