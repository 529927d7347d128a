// The few pictograms of the view, 16 by 16, drawn with the text's colour.

const paths = {
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  plus: "M8 3v10M3 8h10",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2L13.5 13.5",
  chevron: "m6 4 4 4-4 4",
  down: "m4 6 4 4 4-4",
  close: "m4 4 8 8m0-8-8 8",
  fork: "M4 2v3.2c0 3 8 2 8 6V12M4 5v7",
  panel: "M2.5 3.5h11v9h-11zM10 3.5v9",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.5v1.6m0 9.8v1.6M1.5 8h1.6m9.8 0h1.6M3.4 3.4l1.1 1.1m7 7 1.1 1.1m0-9.2-1.1 1.1m-7 7-1.1 1.1",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.6Z",
  half: "M8 2.5a5.5 5.5 0 1 0 0 11m0-11a5.5 5.5 0 1 1 0 11m0-11v11M8 5l3.5-1M8 8h5.4M8 11l3.5 1",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  pin: "M9.5 2.5 13.5 6.5 10.8 7.6 8.6 11.4 4.6 7.4 8.4 5.2ZM6.4 9.6 2.8 13.2",
  terminal: "m3 5 3 3-3 3m5 0h5",
  thought: "M3 5.5h10M3 8.5h7M3 11.5h4",
  back: "m10 3.5-4.5 4.5 4.5 4.5",
  send: "M8 13V3.5M3.8 7.5 8 3.3l4.2 4.2",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  help: "M6 6a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.4M8 11.6v.01",
  folder: "M2 4.5v8h12v-6.5H8L6.5 4.5Z",
  lock: "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
      {name === "fork" && (
        <>
          <circle cx="4" cy="13" r="1.3" />
          <circle cx="12" cy="13" r="1.3" />
        </>
      )}
    </svg>
  );
}
