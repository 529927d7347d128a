// The newest message of sessions whose transcript is not loaded, for the line of their
// lanes. Each is asked for once, and only a few at a time: fifty agents open at once.

import type { Api } from "./api";
import type { Entities } from "./entities";

const atOnce = 4;

export class Peeks {
  private readonly queue: string[] = [];
  private readonly asked = new Set<string>();
  private running = 0;

  constructor(
    private readonly api: Api,
    private readonly workspace: string,
    private readonly entities: () => Entities,
    private readonly changed: () => void,
  ) {}

  ask(sessionId: string): void {
    const e = this.entities();
    if (this.asked.has(sessionId) || e.threads.has(sessionId) || e.peeks.has(sessionId)) return;
    this.asked.add(sessionId);
    this.queue.push(sessionId);
    this.pump();
  }

  /** After the entities were read anew: what was known of them is gone. */
  forget(): void {
    this.asked.clear();
  }

  private pump(): void {
    while (this.running < atOnce && this.queue.length > 0) {
      this.running++;
      void this.read(this.queue.shift()!);
    }
  }

  private async read(sessionId: string): Promise<void> {
    const e = this.entities();
    const seq = e.seq;
    try {
      const page = await this.api.messages(this.workspace, sessionId, { limit: 1 });
      for (const m of page.items) e.putMessage(m, seq);
      this.changed();
    } catch {
      this.asked.delete(sessionId); // may be asked for again
    }
    this.running--;
    this.pump();
  }
}
