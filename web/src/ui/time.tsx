import { now } from "../lib/media";
import { ago, clock, roughly, stopwatch } from "../lib/time";

/** Time a turn has taken, counting while it is open. Only this leaf is drawn each second. */
export function Elapsed({ since, until }: { since: string; until?: string | undefined }) {
  const end = until ? Date.parse(until) : now.value;
  return <span class="num">{stopwatch(end - Date.parse(since))}</span>;
}

export function Ago({ at }: { at: string }) {
  return (
    <time class="num" dateTime={at} title={new Date(at).toLocaleString()}>
      {ago(at, now.value)}
    </time>
  );
}

export function For({ since }: { since: string }) {
  return <span class="num">{roughly(now.value - Date.parse(since))}</span>;
}

export function Clock({ at, seconds = false }: { at: string; seconds?: boolean }) {
  return (
    <time class="num" dateTime={at}>
      {clock(at, seconds)}
    </time>
  );
}
