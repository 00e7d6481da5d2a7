// Numbers as people read them.

export function rate(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(0)}k`;
  if (value >= 1e3) return `${(value / 1e3).toFixed(1)}k`;
  return value > 0 && value < 9.95 ? value.toFixed(1) : value.toFixed(0);
}

export const percent = (v: number) => `${Math.round(v * 100)}%`;

/** Octets, by powers of 1024. */
export function octets(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at++; }
  return `${at === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[at]}`;
}

export function duration(ms: number): string {
  const s = Math.floor(ms / 1000), m = Math.floor(s / 60), hours = Math.floor(m / 60), days = Math.floor(hours / 24);
  if (days > 0) return `${days} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${m % 60} min`;
  return m > 0 ? `${m} min ${s % 60} s` : `${s} s`;
}

export const count = (value: number) => value.toLocaleString("en");
