/* The site's search runs in a worker, which browsers refuse to a page opened from a file. A hidden frame serves there. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><body></body>");
      inside.document.close();
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((done) => {
        const script = inside.document.createElement("script");
        script.onload = done;
        script.src = url;
        inside.document.body.appendChild(script);
      });
    }
    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
