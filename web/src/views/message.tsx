// One entry of a transcript.

import { useState } from "preact/hooks";
import type { Message } from "../data/model";
import { firstLine, plain } from "../lib/text";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { Markdown } from "../ui/markdown";
import { draftOf } from "./drafts";
import { useModel } from "./model";

/** Above this a message is cut, with a button for the rest: one paste must not slow the page. */
const longText = 12_000;

export function MessageView({ id }: { id: string }) {
  const model = useModel();
  const message = model.read(`msg:${id}`).messages.get(id);
  if (!message) return null;
  switch (message.kind) {
    case "tool_call":
      return <ToolCall message={message} />;
    case "thinking":
      return <Thinking message={message} />;
    case "notice":
      return <p class="notice">{message.content}</p>;
    case "text":
      return message.role === "user" ? <FromUser message={message} /> : <FromAgent message={message} />;
    default: // a kind that a newer daemon knows
      return <p class="notice">A “{String(message.kind)}” entry that this view cannot show</p>;
  }
}

function FromUser({ message }: { message: Message }) {
  const [text, rest] = useCut(message.content);
  return (
    <div class={`you ${message.status}`}>
      <div class="you-text">{text}</div>
      {rest}
      {message.status === "pending" && <p class="delivery soft">On its way to the agent…</p>}
      {message.status === "undelivered" && <Undelivered message={message} />}
    </div>
  );
}

function Undelivered({ message }: { message: Message }) {
  const draft = draftOf(message.agentSessionId);
  return (
    <p class="delivery error">
      The agent never got this.{" "}
      <button type="button" class="link" onClick={() => (draft.value = draft.value ? `${draft.value}\n${message.content}` : message.content)}>
        Put it back into the box below
      </button>
    </p>
  );
}

function FromAgent({ message }: { message: Message }) {
  const [text, rest] = useCut(message.content);
  const streaming = message.status === "streaming";
  return (
    <div class={`agent ${message.status}`}>
      <Markdown text={text} streaming={streaming} />
      {streaming && text === "" && <span class="caret" aria-hidden="true" />}
      {rest}
      <CutOff message={message} />
    </div>
  );
}

function CutOff({ message }: { message: Message }) {
  if (message.status === "interrupted") return <p class="delivery soft">Cut off here.</p>;
  if (message.status === "failed") return <p class="delivery error">This failed.</p>;
  return null;
}

function Thinking({ message }: { message: Message }) {
  const streaming = message.status === "streaming";
  if (message.content === "") return streaming ? <p class="thinking-live soft">Thinking…</p> : null;
  return (
    <details class="fold thinking">
      <summary>
        <Icon name="thought" />
        <span class="fold-title">{streaming ? "Thinking" : "Thought"}</span>
        <span class="fold-line soft">{firstLine(message.content, 140)}</span>
      </summary>
      <div class="fold-body soft">
        <Markdown text={message.content} streaming={streaming} />
      </div>
    </details>
  );
}

function ToolCall({ message: m }: { message: Message }) {
  const [open, setOpen] = useState(false);
  const title = m.title || m.name || "Tool";
  return (
    <details class={`fold tool ${m.status}`} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <ToolGlyph message={m} />
        <span class="fold-title mono">{title}</span>
        <span class="fold-line soft mono">{m.output ? firstLine(m.output, 140) : ""}</span>
        {m.status === "failed" && <span class="state-word s-failed">failed</span>}
        {m.status === "interrupted" && <span class="state-word s-interrupted">cut off</span>}
      </summary>
      {open && (
        <div class="fold-body">
          {m.name && m.name !== title && <p class="soft small">{m.name}</p>}
          {m.input && <CodeBlock label="Input" text={pretty(m.input)} />}
          {m.output ? <CodeBlock label="Output" text={plain(m.output)} /> : <p class="soft small">{m.status === "streaming" ? "No output yet." : "No output."}</p>}
        </div>
      )}
    </details>
  );
}

function ToolGlyph({ message: m }: { message: Message }) {
  if (m.status === "streaming" || m.status === "pending") return <Glyph state="working" />;
  if (m.status === "failed") return <Glyph state="failed" word />;
  if (m.status === "interrupted") return <Glyph state="interrupted" word />;
  return <Icon name="terminal" />;
}

function CodeBlock({ label, text }: { label: string; text: string }) {
  const [shown, rest] = useCut(text);
  return (
    <>
      <pre class="code" tabIndex={0} aria-label={label}>
        {shown}
      </pre>
      {rest}
    </>
  );
}

/** The text to draw, and the button that shows the rest of a very long one. */
function useCut(text: string) {
  const [whole, setWhole] = useState(false);
  if (whole || text.length <= longText * 1.2) return [text, null] as const;
  const button = (
    <button type="button" class="more" onClick={() => setWhole(true)}>
      Show all {Math.round(text.length / 1000)} thousand characters
    </button>
  );
  return [text.slice(0, longText), button] as const;
}

function pretty(input: string): string {
  if (!/^\s*[{[]/.test(input) || input.length > 20_000) return input;
  try {
    return JSON.stringify(JSON.parse(input), null, 2);
  } catch {
    return input;
  }
}
