// What faces carry a second, from what they count.
import { rate } from "../shared/format";
import { get, type Face } from "./api";

const packets = (f: Face) => f.in_interests + f.in_data + f.in_nacks + f.out_interests + f.out_data + f.out_nacks;

export class Carried {
  private before = new Map<number, number>();
  private at = 0;
  private now = new Map<number, number>();

  /** Looks at the faces: packets of both directions a second, since it looked last. */
  async look(): Promise<void> {
    const faces = await get<Face[]>("/v1/faces"), at = performance.now(), seconds = (at - this.at) / 1000;
    this.now = new Map(faces.map((f) => {
      const was = this.before.get(f.id);
      return [f.id, was === undefined ? 0 : Math.max(0, packets(f) - was) / seconds];
    }));
    this.before = new Map(faces.map((f) => [f.id, packets(f)]));
    this.at = at;
  }

  of(face: number | undefined): number {
    return face === undefined ? 0 : this.now.get(face) ?? 0;
  }

  /** In words; nothing where nothing is carried. */
  text(face: number | undefined): string[] {
    const carried = this.of(face);
    return carried >= 0.5 ? [`${rate(carried)} pkt/s`] : [];
  }
}
