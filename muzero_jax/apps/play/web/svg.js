// One SVG element with its attributes and children.

const NAMESPACE = "http://www.w3.org/2000/svg";

export function element(name, attributes, ...children) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
