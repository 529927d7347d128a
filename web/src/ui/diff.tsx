/** A unified diff as text, its lines told apart by sign and tint. */
export function Diff({ text }: { text: string }) {
  return (
    <pre class="code diff" tabIndex={0} aria-label="Changes">
      {text.split("\n").map((line, i) => (
        <span key={i} class={kind(line)}>
          {line + "\n"}
        </span>
      ))}
    </pre>
  );
}

function kind(line: string): string {
  if (/^(\+\+\+|---|diff |index )/.test(line)) return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "add";
  if (line.startsWith("-")) return "del";
  return "";
}
