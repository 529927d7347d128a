// Where a person writes. While a turn runs the text guides it; a text is never lost.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Entities } from "../data/entities";
import type { Session } from "../data/model";
import { words } from "../data/api";
import { isLive, latestTurn } from "../data/select";
import { freshId } from "../lib/id";
import { narrow } from "../lib/media";
import { Icon } from "../ui/icon";
import { draftOf } from "./drafts";
import { useModel } from "./model";

export interface Stance {
  placeholder: string;
  /** Why nothing can be sent now; the text stays. */
  blocked?: string;
}

/** What a message would do now, from the turn and what the provider can do. */
export function stance(e: Entities, session: Session): Stance {
  const turn = latestTurn(e, session.id);
  if (!isLive(turn)) return { placeholder: "Message the agent" };
  if (turn.phase === "settling") return { placeholder: "The turn is being stopped…", blocked: "A stop is under way; send when it has ended." };
  const main = turn.providerTurn === undefined || turn.providerTurn.phase !== "ended";
  const can = session.capabilities;
  if (main ? can.guide : can.guideWhileChildrenRun) return { placeholder: "Guide the main agent; it decides what to pass on" };
  const when = main ? "while a turn runs" : "while only its agents run";
  return { placeholder: "Write now, send when the turn has ended", blocked: `This provider takes no message ${when}.` };
}

function stanceHere(s: Stance, below: boolean, lost: boolean, outdated: boolean): Stance {
  if (outdated) return { placeholder: "Write now, send when the page is reloaded", blocked: "The daemon is newer than this page: reload it. Your text is kept." };
  if (lost) return { placeholder: "Write now, send when the connection is back", blocked: "Sending needs the connection to the daemon. Your text is kept." };
  return below && !s.blocked ? { placeholder: "Message the main agent" } : s;
}

/** `below`: on the page of an agent, whose own box it could be taken for. */
export function Composer({ rootId, below = false }: { rootId: string; below?: boolean }) {
  const model = useModel();
  const session = model.tree(rootId).sessions.get(rootId);
  const draft = draftOf(rootId);
  const box = useRef<HTMLTextAreaElement>(null);
  const { send, sending, error } = useSend(rootId, () => box.current?.focus());
  useEffect(() => grow(box.current), [draft.value]);
  if (!session) return null;
  const { placeholder, blocked } = stanceHere(stance(model.entities, session), below, model.lostAt.value !== undefined, model.link.value === "outdated");
  const submit = (event: Event) => {
    event.preventDefault();
    if (!blocked) void send();
  };

  return (
    <form class="composer" onSubmit={submit}>
      {error && (
        <p class="error" role="alert">
          Not sent: {error} Your text is still here.
        </p>
      )}
      <div class="box">
        <textarea
          ref={box}
          id="composer"
          rows={1}
          aria-label={placeholder}
          aria-describedby={blocked ? "composer-why" : undefined}
          placeholder={narrow.value ? placeholder.replace(/;.*/, "") : placeholder}
          value={draft.value}
          onInput={(event) => (draft.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
          }}
        />
        {session.permissionMode && (
          <span class="mode faint mono wide-only" title="Permissions of this session">
            {session.permissionMode}
          </span>
        )}
        <button
          type="submit"
          class="primary square"
          aria-label={sending ? "Sending" : "Send"}
          title="Send (Enter); new line with Shift+Enter"
          disabled={sending || blocked !== undefined || draft.value.trim() === ""}
        >
          <Icon name="send" />
        </button>
      </div>
      {blocked && (
        <p class="faint small" id="composer-why">
          {blocked}
        </p>
      )}
    </form>
  );
}

/** Sends the draft. It is given up only once the daemon has taken it. */
function useSend(rootId: string, done: () => void) {
  const model = useModel();
  const draft = draftOf(rootId);
  const [sending, setSending] = useState(false);
  const [error, setError] = useState("");
  // The same text keeps its id until it is taken, so that a second try cannot double it.
  const attempt = useRef({ text: "", id: "" });
  useEffect(() => setError(""), [rootId]);

  const send = async () => {
    const text = draft.value;
    if (text.trim() === "" || sending) return;
    if (attempt.current.text !== text) attempt.current = { text, id: freshId() };
    setSending(true);
    setError("");
    try {
      await model.send(rootId, attempt.current.id, text);
      attempt.current = { text: "", id: "" };
      if (draft.value === text) draft.value = "";
    } catch (cause) {
      setError(words(cause));
    } finally {
      setSending(false);
      done();
    }
  };
  return { send, sending, error };
}

function grow(box: HTMLTextAreaElement | null): void {
  if (!box) return;
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 220)}px`;
}
