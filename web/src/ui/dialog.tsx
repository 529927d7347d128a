import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon";

/** A modal dialog. The platform's own keeps the focus inside and gives Esc. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) dialog.showModal();
  }, []);
  return (
    <dialog
      ref={ref}
      class={props.wide ? "dialog wide" : "dialog"}
      aria-label={props.title}
      onClose={props.onClose}
      onClick={(event) => {
        if (event.target === ref.current) ref.current?.close();
      }}
    >
      <div class="dialog-in">
        <header class="dialog-head">
          <h2>{props.title}</h2>
          <button type="button" class="quiet square" aria-label="Close" onClick={() => ref.current?.close()}>
            <Icon name="close" />
          </button>
        </header>
        {props.children}
      </div>
    </dialog>
  );
}
