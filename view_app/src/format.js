// Numbers as people read them.

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function amount(number, unit = "") {
  if (number === null || number === undefined) return "unknown";
  for (const [size, prefix] of PREFIXES) {
    if (Math.abs(number) >= size) return `${digits(number / size)} ${prefix}${unit}`;
  }
  return `${digits(number)} ${unit}`.trim();
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds >= 1) return `${digits(seconds)} s`;
  if (seconds >= 1e-3) return `${digits(seconds * 1e3)} ms`;
  return `${digits(seconds * 1e6)} µs`;
}

export const percent = (share) => (share >= 0.0995 ? `${Math.round(share * 100)}%` : `${(share * 100).toFixed(1)}%`);

export const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

function digits(number) {
  const magnitude = Math.abs(number);
  if (magnitude >= 100 || Number.isInteger(number)) return String(Math.round(number));
  return number.toFixed(magnitude >= 10 ? 1 : 2);
}

export const METRICS = {
  seconds: { label: "Time", show: duration },
  flops: { label: "FLOPs", show: (value) => amount(value, "FLOPs") },
  memory: { label: "Memory", show: (value) => amount(value, "B") },
  bytes: { label: "Bytes moved", show: (value) => amount(value, "B") },
  parameters: { label: "Parameters", show: (value) => amount(value) },
};
