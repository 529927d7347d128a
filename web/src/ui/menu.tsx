import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** A button that opens a list of choices below it; closes on a choice, Esc, or a click elsewhere. */
export function Menu(props: {
  label: string;
  class?: string;
  button: ComponentChildren;
  align?: "left" | "right";
  children: (close: () => void) => ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  const close = () => setOpen(false);

  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => {
      if (!ref.current?.contains(event.target as Node)) close();
    };
    const key = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
      ref.current?.querySelector<HTMLElement>("button")?.focus();
    };
    document.addEventListener("pointerdown", outside);
    ref.current?.addEventListener("keydown", key);
    const box = ref.current;
    return () => {
      document.removeEventListener("pointerdown", outside);
      box?.removeEventListener("keydown", key);
    };
  }, [open]);

  return (
    <div class="menu" ref={ref}>
      <button
        type="button"
        class={props.class ?? "quiet"}
        aria-label={props.label}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {props.button}
      </button>
      {open && <div class={`menu-list ${props.align ?? "left"}`}>{props.children(close)}</div>}
    </div>
  );
}
