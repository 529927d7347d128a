// Times for people. Order never comes from here: that is the sequence number's.

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** A duration as a stopwatch: 0:07, 3:12, 1:02:09. */
export function stopwatch(ms: number): string {
  const total = Math.max(0, Math.floor(ms / 1000));
  const s = String(total % 60).padStart(2, "0");
  const m = Math.floor(total / 60);
  return m < 60 ? `${m}:${s}` : `${Math.floor(m / 60)}:${String(m % 60).padStart(2, "0")}:${s}`;
}

/** A duration in words that fit a sentence: "48 s", "3 m", "2 h". */
export function roughly(ms: number): string {
  if (ms < minute) return `${Math.max(0, Math.floor(ms / 1000))} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} m`;
  if (ms < day) return `${Math.floor(ms / hour)} h`;
  return `${Math.floor(ms / day)} d`;
}

/** How long ago, short enough for a list: "now", "2 m", "5 h", "Tue", "3 Mar". */
export function ago(iso: string, now: number, locale?: string): string {
  const then = Date.parse(iso);
  const age = now - then;
  if (Number.isNaN(then)) return "";
  if (age < minute) return "now";
  if (age < day) return roughly(age);
  const date = new Date(then);
  if (age < 6 * day) return date.toLocaleDateString(locale, { weekday: "short" });
  return date.toLocaleDateString(locale, { day: "numeric", month: "short" });
}

/** Time of day, hours and minutes. */
export function clock(iso: string, seconds = false): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  return date.toLocaleTimeString(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    ...(seconds ? { second: "2-digit" } : {}),
    hour12: false,
  });
}
