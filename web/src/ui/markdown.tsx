import { useEffect, useMemo, useRef } from "preact/hooks";
import { renderMarkdown, splitBlocks } from "../lib/markdown";

/** Finished text is parsed once; of streaming text only the last block is parsed again. */
export function Markdown({ text, streaming = false }: { text: string; streaming?: boolean }) {
  if (!streaming) return <Part text={text} finished />;
  return (
    <>
      {splitBlocks(text).map((block, i) => (
        <Part key={i} text={block} finished={false} />
      ))}
    </>
  );
}

function Part({ text, finished }: { text: string; finished: boolean }) {
  const ref = useRef<HTMLDivElement>(null);
  const html = useMemo(() => renderMarkdown(text), [text]);
  useEffect(() => {
    const codes = finished ? ref.current?.querySelectorAll<HTMLElement>("pre > code[class*=language-]") : undefined;
    if (!codes?.length) return;
    return whenIdle(async () => {
      const { colour } = await import("../lib/highlight");
      for (const code of codes) if (code.isConnected) colour(code);
    });
  }, [html, finished]);
  return <div class="md" ref={ref} dangerouslySetInnerHTML={{ __html: html }} />;
}

function whenIdle(run: () => void): () => void {
  if (typeof requestIdleCallback === "undefined") {
    const timer = setTimeout(run, 100);
    return () => clearTimeout(timer);
  }
  const handle = requestIdleCallback(run, { timeout: 2000 });
  return () => cancelIdleCallback(handle);
}
