import { useMemo } from "preact/hooks";
import { renderMarkdown, splitBlocks } from "../lib/markdown";

/** Finished text is parsed once; of streaming text only the last block is parsed again. */
export function Markdown({ text, streaming = false }: { text: string; streaming?: boolean }) {
  if (!streaming) return <Part text={text} />;
  return (
    <>
      {splitBlocks(text).map((block, i) => (
        <Part key={i} text={block} />
      ))}
    </>
  );
}

function Part({ text }: { text: string }) {
  const html = useMemo(() => renderMarkdown(text), [text]);
  return <div class="md" dangerouslySetInnerHTML={{ __html: html }} />;
}
