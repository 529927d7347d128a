// Ties the entities to signals: whoever reads a key is drawn again when it changes, at
// most once a frame however many events came.

import { batch, signal, type Signal } from "@preact/signals";
import type { Entities, Key } from "./entities";

export class Live {
  private readonly versions = new Map<Key, Signal<number>>();
  private scheduled = false;

  constructor(
    private readonly entities: () => Entities,
    private readonly drawn: (keys: ReadonlySet<Key>) => void,
    private readonly frame: (run: () => void) => void = nextFrame,
  ) {}

  /** Subscribes the caller to these keys. */
  read(...keys: Key[]): void {
    for (const key of keys) this.version(key).value;
    this.version("*").value;
  }

  changed(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.frame(() => {
      this.scheduled = false;
      this.flush();
    });
  }

  flush(): void {
    const touched = this.entities().touched;
    if (touched.size === 0) return;
    const keys = new Set(touched);
    touched.clear();
    batch(() => {
      for (const key of keys) {
        const version = this.versions.get(key);
        if (version) version.value++;
      }
    });
    this.drawn(keys);
  }

  private version(key: Key): Signal<number> {
    let version = this.versions.get(key);
    if (!version) this.versions.set(key, (version = signal(0)));
    return version;
  }
}

/** The next frame; in a hidden tab, where frames stop, soon. */
function nextFrame(run: () => void): void {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    run();
  };
  requestAnimationFrame(once);
  setTimeout(once, 200);
}
