// A question of one exact turn, where a person answers it.

import type { ComponentProps } from "preact";
import { useState } from "preact/hooks";
import { words } from "../data/api";
import type { Answer, Interaction, Option, Question } from "../data/model";
import { isOpen } from "../data/select";
import { nameOf } from "../data/why";
import { clip } from "../lib/text";
import { href, route } from "../lib/router";
import { Diff } from "../ui/diff";
import { Glyph } from "../ui/glyph";
import { Clock, For } from "../ui/time";
import { Markdown } from "../ui/markdown";
import { needsLink, questionId, useModel } from "./model";

export function QuestionCard({ interaction: i }: { interaction: Interaction }) {
  const model = useModel();
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const session = model.tree(i.agentSessionId).sessions.get(i.agentSessionId);
  const name = session?.kind === "child" ? nameOf(session) : "The main agent";
  const sending = busy || i.status === "answering";

  const give = (answer: Answer) => {
    setError("");
    setBusy(true);
    model
      .answer(i, answer)
      .catch((cause: unknown) => setError(words(cause)))
      .finally(() => setBusy(false));
  };

  return (
    <section class={`question${sending ? " sending" : ""}`} id={questionId(i)} tabIndex={-1} aria-label={`${name} asks: ${i.title}`}>
      <p class="q-head">
        <Glyph state={sending ? "working" : "ask"} word />
        <b>{i.title}</b>
        <span class="soft">
          {name} asked <For since={i.createdAt} /> ago{i.detail.cwd ? ` · in ${i.detail.cwd}` : ""}
        </span>
      </p>
      {i.owner === "unknown" && <p class="soft small">The provider did not say which agent asks; the answer goes to the main agent.</p>}
      <Detail interaction={i} />
      {i.error && i.status === "pending" && (
        <p class="error" role="alert">
          Your answer could not be delivered: {i.error.message} The question is open again.
        </p>
      )}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {sending ? (
        <p class="q-sending soft">Your answer is on its way…</p>
      ) : i.detail.questions?.length ? (
        <QuestionForm questions={i.detail.questions} form={i.kind === "elicitation"} onAnswer={give} />
      ) : (
        <Choices interaction={i} onAnswer={give} />
      )}
      {model.lostAt.value !== undefined && <p class="q-sending soft">Answering needs the connection to the daemon.</p>}
      {session?.kind === "child" && <ContextLink interaction={i} />}
    </section>
  );
}

/** From the question to the work around it. */
function ContextLink({ interaction: i }: { interaction: Interaction }) {
  const { workspace, session, child } = route.value;
  if (child === i.agentSessionId || !workspace || !session) return null;
  return (
    <p class="q-foot faint">
      The answer goes to this agent only.{" "}
      <a data-route href={href({ workspace, session, child: i.agentSessionId })}>
        See what it was doing
      </a>
    </p>
  );
}

function Detail({ interaction: { detail } }: { interaction: Interaction }) {
  return (
    <>
      {detail.reason && <p class="q-reason">{detail.reason}</p>}
      {detail.command && (
        <pre class="code q-code" tabIndex={0} aria-label="Command">
          {detail.command}
        </pre>
      )}
      {detail.diff && <Diff text={detail.diff} />}
      {detail.text && (
        <div class="q-text" tabIndex={0} role="group" aria-label="Details">
          <Markdown text={detail.text} />
        </div>
      )}
    </>
  );
}

const roleClass: Record<Option["role"], string> = { allow: "primary", allow_always: "", deny: "", abort: "danger", other: "" };

/** A button that answers: it does nothing while nobody could take the answer. */
function AnswerButton(props: ComponentProps<"button">) {
  const lost = useModel().lostAt.value !== undefined;
  return <button {...props} disabled={lost || props.disabled} title={lost ? needsLink : props.title} />;
}

function Choices({ interaction: i, onAnswer }: { interaction: Interaction; onAnswer: (a: Answer) => void }) {
  const free = i.options.length === 0;
  if (free && i.kind === "elicitation") return <FreeText onAnswer={onAnswer} decline />;
  if (free && i.kind !== "approval") return <FreeText onAnswer={onAnswer} />;
  if (free) {
    return (
      <div class="row">
        <AnswerButton type="button" class="primary" onClick={() => onAnswer({ action: "accept" })}>
          Accept
        </AnswerButton>
        <AnswerButton type="button" onClick={() => onAnswer({ action: "decline" })}>
          Decline
        </AnswerButton>
      </div>
    );
  }
  // A question without a clear "yes" has no default: the first choice must not look like one.
  return (
    <div class="row">
      {i.options.map((option) => (
        <AnswerButton
          type="button"
          key={option.id}
          class={roleClass[option.role]}
          title={option.description}
          onClick={() => onAnswer({ optionId: option.id })}
        >
          {clip(option.label, 80)}
        </AnswerButton>
      ))}
    </div>
  );
}

function FreeText({ onAnswer, decline = false }: { onAnswer: (a: Answer) => void; decline?: boolean }) {
  const [text, setText] = useState("");
  return (
    <form
      class="q-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") onAnswer(decline ? { action: "accept", text } : { text });
      }}
    >
      <textarea rows={2} aria-label="Your answer" placeholder="Your answer" value={text} onInput={(e) => setText(e.currentTarget.value)} />
      <div class="row">
        <AnswerButton type="submit" class="primary" disabled={text.trim() === ""}>
          Answer
        </AnswerButton>
        {decline && (
          <AnswerButton type="button" onClick={() => onAnswer({ action: "decline" })}>
            Decline
          </AnswerButton>
        )}
      </div>
    </form>
  );
}

/** `form`: fields of which some may be left open, the daemon knows which; and all may be declined. */
function QuestionForm({ questions, form, onAnswer }: { questions: readonly Question[]; form: boolean; onAnswer: (a: Answer) => void }) {
  const [given, setGiven] = useState<Record<string, string>>({});
  const set = (id: string, value: string) => setGiven((old) => ({ ...old, [id]: value }));
  const answered = (q: Question) => (given[q.id] ?? "").trim() !== "";
  const whole = form ? questions.some(answered) : questions.every(answered);
  return (
    <form
      class="q-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (whole) onAnswer({ answers: given });
      }}
    >
      {questions.map((q) => (
        <fieldset key={q.id}>
          <legend>{q.text}</legend>
          {q.options.map((o) => (
            <QuestionOption key={o.id} question={q} option={o} value={given[q.id] ?? ""} onChange={(v) => set(q.id, v)} />
          ))}
          <input
            type="text"
            aria-label={q.options.length > 0 ? `Another answer to: ${q.text}` : q.text}
            placeholder={q.options.length > 0 ? "Or in your own words" : "Your answer"}
            value={isOffered(q, given[q.id] ?? "") ? "" : (given[q.id] ?? "")}
            onInput={(e) => set(q.id, e.currentTarget.value)}
          />
        </fieldset>
      ))}
      <div class="row">
        <AnswerButton type="submit" class="primary" disabled={!whole}>
          Answer
        </AnswerButton>
        {form && (
          <AnswerButton type="button" onClick={() => onAnswer({ action: "decline" })}>
            Decline
          </AnswerButton>
        )}
      </div>
    </form>
  );
}

function QuestionOption(props: { question: Question; option: Option; value: string; onChange: (value: string) => void }) {
  const { question: q, option: o } = props;
  const chosen = q.multi ? props.value.split(", ") : [props.value];
  const on = chosen.includes(o.label);
  const toggle = () => {
    if (!q.multi) return props.onChange(o.label);
    const kept = chosen.filter((c) => c !== "" && c !== o.label);
    props.onChange((on ? kept : [...kept, o.label]).join(", "));
  };
  return (
    <label class="choice">
      <input type={q.multi ? "checkbox" : "radio"} name={q.id} checked={on} onChange={toggle} />
      <span>
        {o.label}
        {o.description && <small class="soft"> {o.description}</small>}
      </span>
    </label>
  );
}

function isOffered(q: Question, value: string): boolean {
  const labels = q.options.map((o) => o.label);
  return value === "" || (q.multi ? value.split(", ").every((v) => labels.includes(v)) : labels.includes(value));
}

/** A question that is over: what was answered, by whom, through which client. */
export function AnsweredLine({ interaction: i }: { interaction: Interaction }) {
  if (isOpen(i)) return null;
  const gone = i.status === "superseded";
  return (
    <p class="answered">
      <Glyph state={gone ? "canceled" : "completed"} word />
      <span>
        <span class="soft">{i.title}</span> <b>{gone ? "No longer asked" : answerWords(i)}</b>
        <span class="faint">
          {" "}
          {gone ? "" : `${who(i.answeredBy)} · `}
          <Clock at={i.updatedAt} />
        </span>
      </span>
    </p>
  );
}

function answerWords(i: Interaction): string {
  const r = i.response;
  if (!r) return "Answered";
  if (r.optionId) return i.options.find((o) => o.id === r.optionId)?.label ?? "Answered";
  if (r.text) return `“${clip(r.text, 160)}”`;
  if (r.answers) return clip(Object.values(r.answers).join("; "), 160);
  const actions = { accept: "Accepted", decline: "Declined", cancel: "Dismissed" };
  return r.action ? actions[r.action] : "Answered";
}

function who(client: string | undefined): string {
  if (!client || client === "web") return "in the browser";
  return client === "provider" ? "by the provider itself" : `elsewhere, by ${client}`;
}
