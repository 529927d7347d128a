// A session's transcript: its own rows in order, with delegation cards in their places.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Block } from "../data/transcript";
import { blocksOf } from "../data/transcript";
import { isLive, latestTurn, openPromptsOf, tokens } from "../data/select";
import type { Message, Turn } from "../data/model";
import { compact } from "../lib/text";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { Clock, Elapsed } from "../ui/time";
import { Delegation } from "./delegation";
import { AnsweredLine, QuestionCard } from "./interaction";
import { MessageView } from "./message";
import { useModel } from "./model";
import { earlier, hold, later, spanOf, type Span, type Window } from "./window";

/** What a reader does to move what is in sight. */
const hands = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

/** The scrolling transcript of the page. */
export function Transcript({ sessionId }: { sessionId: string }) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const whole = useRef(true); // the newest entry is among those shown
  const [away, setAway] = useState(false);
  const { sought } = useModel();

  useLayoutEffect(() => {
    const box = scroller.current!;
    const follow = () => {
      const card = sought.peek() && document.getElementById(sought.peek()!);
      if (card && box.contains(card)) card.scrollIntoView({ block: "center" });
      else if (stuck.current) box.scrollTop = box.scrollHeight;
    };
    // From the first touch on the reader decides what is in sight.
    const letGo = () => void (sought.value = undefined);
    const watch = () => {
      stuck.current = whole.current && box.scrollHeight - box.scrollTop - box.clientHeight < 48;
      setAway(!stuck.current);
    };
    const observer = new ResizeObserver(follow);
    observer.observe(content.current!);
    observer.observe(box);
    box.addEventListener("scroll", watch, { passive: true });
    for (const hand of hands) box.addEventListener(hand, letGo, { passive: true });
    follow();
    return () => {
      observer.disconnect();
      box.removeEventListener("scroll", watch);
      for (const hand of hands) box.removeEventListener(hand, letGo);
    };
  }, []);

  const toNewest = () => {
    sought.value = undefined;
    stuck.current = true;
    setAway(false);
    const box = scroller.current!;
    requestAnimationFrame(() => (box.scrollTop = box.scrollHeight));
  };

  return (
    <div class="scroll" ref={scroller}>
      <div class="feed-in" ref={content}>
        <Feed sessionId={sessionId} depth={0} label="Transcript" scroller={scroller} away={away} whole={whole} />
      </div>
      {away && sought.value === undefined && (
        <button type="button" class="newest" onClick={toNewest}>
          <Icon name="down" /> Newest
        </button>
      )}
    </div>
  );
}

interface FeedProps {
  sessionId: string;
  depth: number;
  label: string;
  scroller?: { current: HTMLDivElement | null };
  away?: boolean;
  whole?: { current: boolean };
}

export function Feed({ sessionId, depth, label, scroller, away = false, whole }: FeedProps) {
  const model = useModel();
  const root = model.sync.value!.entities.rootOf(sessionId);
  const e = model.read(`thread:${sessionId}`, `tree:${root}`);
  const thread = e.threads.get(sessionId);
  const blocks = blocksOf(e, sessionId);
  const [w, setWindow] = useState<Window>({});
  const keys = blocks.map((b) => b.key);
  const span = spanOf(w, keys);
  const nested = depth > 0;

  useEffect(() => void model.sync.peek()?.openThread(sessionId), [sessionId]);
  useLayoutEffect(() => setWindow((old) => (away ? hold(old, keys) : {})), [away, sessionId]);
  useLayoutEffect(() => {
    if (whole) whole.current = span.to >= blocks.length;
  });

  const mark = usePlace(scroller, span);
  const goEarlier = () => {
    mark();
    if (span.from > 0) setWindow(earlier(w, keys));
    else if (thread?.hasBefore && thread.state === "loaded") {
      setWindow(hold(w, keys));
      void model.sync.peek()?.openOlder(sessionId);
    }
  };
  const more = span.from > 0 || (thread?.hasBefore ?? false);
  const loading = thread === undefined || thread.state === "loading";

  return (
    <div class={nested ? "feed nested" : "feed"}>
      {more && <Edge key={`top-${span.from}`} onReach={goEarlier} scroller={scroller} loading={loading} />}
      {thread?.error && <ReadError text={thread.error} again={() => void model.sync.peek()?.openThread(sessionId)} />}
      {loading && blocks.length === 0 && <p class="notice">Loading…</p>}
      <div role={nested ? "group" : "feed"} aria-label={label} aria-busy={loading}>
        {blocks.slice(span.from, span.to).map((block, i) => (
          <article
            key={block.key}
            class={`entry e-${block.kind}`}
            aria-label={labelOf(block)}
            aria-posinset={more && thread?.hasBefore ? undefined : span.from + i + 1}
            aria-setsize={thread?.hasBefore ? -1 : blocks.length}
            tabIndex={nested ? undefined : -1}
          >
            <BlockView block={block} depth={depth} />
          </article>
        ))}
      </div>
      {span.to < blocks.length && <Edge key={`end-${span.to}`} onReach={() => (mark(), setWindow(later(w, keys)))} scroller={scroller} loading={false} />}
      {span.to >= blocks.length && !nested && <Ending sessionId={sessionId} />}
      {!loading && blocks.length === 0 && <p class="notice">Nothing here yet</p>}
    </div>
  );
}

function ReadError({ text, again }: { text: string; again: () => void }) {
  return (
    <p class="error" role="alert">
      {text}{" "}
      <button type="button" class="link" onClick={again}>
        Try again
      </button>
    </p>
  );
}

/** What stands below the newest row: the open questions of this session itself. */
function Ending({ sessionId }: { sessionId: string }) {
  const model = useModel();
  const e = model.tree(sessionId);
  const turn = latestTurn(e, sessionId);
  const own = openPromptsOf(e, sessionId);
  const part = turn?.providerTurn;
  return (
    <>
      {isLive(turn) && part?.phase === "ended" && e.rootOf(sessionId) === sessionId && (
        <p class="notice">
          <span>
            The main agent has finished its own part{part.outcome ? `: ${part.outcome}, kept until its agents end` : ""}
            {part.endedAt && (
              <>
                {" · "}
                <Clock at={part.endedAt} />
              </>
            )}
          </span>
        </p>
      )}
      {own.map((i) => (
        <QuestionCard key={i.requestId} interaction={i} />
      ))}
    </>
  );
}

function BlockView({ block, depth }: { block: Block; depth: number }) {
  switch (block.kind) {
    case "message":
      return <MessageView id={block.message.id} />;
    case "notices":
      return <NoticeRun messages={block.messages} />;
    case "delegation":
      return <Delegation block={block} depth={depth} />;
    case "answered":
      return <AnsweredLine interaction={block.interaction} />;
    case "turn":
      return block.place === "start" ? <p class="notice">The agent began this by itself</p> : <TurnEnd turn={block.turn} />;
  }
}

/** The newest of several that say the same; the others are a click away. */
function NoticeRun({ messages }: { messages: readonly Message[] }) {
  const [open, setOpen] = useState(false);
  const last = messages[messages.length - 1]!;
  return (
    <>
      {open && messages.slice(0, -1).map((m) => <MessageView key={m.id} id={m.id} />)}
      <p class="notice">
        <span>
          {last.content}{" "}
          <button type="button" class="link small" aria-expanded={open} onClick={() => setOpen(!open)}>
            {messages.length} times, last at <Clock at={last.createdAt} seconds />
          </button>
        </span>
      </p>
    </>
  );
}

function TurnEnd({ turn }: { turn: Turn }) {
  const outcome = turn.outcome ?? "interrupted";
  const used = tokens(turn.usage);
  return (
    <p class={`turn-end s-${outcome}`}>
      <Glyph state={outcome} word />
      <span>
        <b>{outcome}</b>
        <span class="faint">
          {" · "}
          <Elapsed since={turn.startedAt ?? turn.createdAt} until={turn.settledAt} />
          {used > 0 && <> · {compact(used)} tokens</>}
          {turn.settledAt && (
            <>
              {" · "}
              <Clock at={turn.settledAt} />
            </>
          )}
        </span>
        {turn.error && <span class="turn-error">{turn.error.message}</span>}
      </span>
    </p>
  );
}

function labelOf(block: Block): string {
  switch (block.kind) {
    case "message":
      return { user: "You", assistant: "Agent", tool: "Tool call", system: "Notice" }[block.message.role] ?? "Entry";
    case "notices":
      return "Notices";
    case "delegation":
      return "Delegation";
    case "answered":
      return "Answered question";
    case "turn":
      return block.place === "start" ? "Turn begins" : "Turn ended";
  }
}

/**
 * Keeps what is being read where it is while entries come and go around it. Call the
 * returned function before the change; the place is restored before it is painted.
 */
function usePlace(scroller: FeedProps["scroller"], span: Span): () => void {
  const marked = useRef<{ read: Element; top: number; from: number; to: number } | undefined>(undefined);
  useLayoutEffect(() => {
    const m = marked.current;
    const box = scroller?.current;
    if (!m || !box || (m.from === span.from && m.to === span.to)) return;
    marked.current = undefined;
    if (m.read.isConnected) box.scrollTop += m.read.getBoundingClientRect().top - m.top;
  });
  return () => {
    const box = scroller?.current;
    if (!box) return;
    const edge = box.getBoundingClientRect().top;
    const read = [...box.querySelectorAll(".feed-in > .feed > div > article")].find((a) => a.getBoundingClientRect().bottom > edge);
    marked.current = read && { read, top: read.getBoundingClientRect().top, ...span };
  };
}

/** The edge of what is shown: loads more when it comes into sight, or at a click. */
function Edge(props: { onReach: () => void; scroller: FeedProps["scroller"]; loading: boolean }) {
  const ref = useRef<HTMLButtonElement>(null);
  const reach = useRef(props.onReach);
  reach.current = props.onReach;
  useEffect(() => {
    if (!props.scroller) return;
    const observer = new IntersectionObserver(
      (seen) => {
        if (seen.some((s) => s.isIntersecting)) reach.current();
      },
      { root: props.scroller.current, rootMargin: "400px" },
    );
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, [props.loading]);
  return (
    <button type="button" class="more" ref={ref} disabled={props.loading} onClick={() => props.onReach()}>
      {props.loading ? "Loading…" : "Show more"}
    </button>
  );
}
