// Keeps the gate of one root's open turn fresh: what is expected, and since when an agent
// is silent, are in no event.

import type { Api } from "./api";
import type { Entities } from "./entities";
import { isLive, latestTurn } from "./select";

const afterChange = 400;
const betweenAsks = 15_000;

export class GateWatch {
  private rootId: string | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private due = Infinity;

  constructor(
    private readonly api: Api,
    private readonly workspace: string,
    private readonly entities: () => Entities,
    private readonly changed: () => void,
  ) {}

  watch(rootId: string | undefined): void {
    this.rootId = rootId;
    this.stop();
    if (rootId !== undefined) this.schedule(0);
  }

  /** Called with what a frame drew: a change in the tree may change its gate. */
  noticed(keys: ReadonlySet<string>): void {
    if (this.rootId !== undefined && keys.has(`tree:${this.rootId}`)) this.schedule(afterChange);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.due = Infinity;
  }

  private schedule(delay: number): void {
    const due = Date.now() + delay;
    if (due >= this.due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => {
      this.due = Infinity;
      void this.read();
    }, delay);
  }

  private async read(): Promise<void> {
    const rootId = this.rootId;
    const e = this.entities();
    const turn = rootId === undefined ? undefined : latestTurn(e, rootId);
    if (rootId === undefined || !isLive(turn)) return;
    try {
      e.putGate(await this.api.gate(this.workspace, rootId, turn.id), rootId);
      this.changed();
    } catch {
      // The line falls back to what the entities say.
    }
    if (this.rootId === rootId) this.schedule(betweenAsks);
  }
}
