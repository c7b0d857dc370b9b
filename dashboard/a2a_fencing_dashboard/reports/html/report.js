"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const config = { responsive: true, displaylogo: false, scrollZoom: false };

  const themed = (layout) => {
    const style = getComputedStyle(document.body);
    const label = { bgcolor: style.getPropertyValue("--tip").trim(), font: { color: style.color } };
    return {
      ...layout,
      font: { ...layout.font, color: style.color, family: style.fontFamily },
      hoverlabel: { ...layout.hoverlabel, ...label },
    };
  };

  const draw = (frame) => {
    const { data, layout } = JSON.parse(frame.querySelector("script").textContent);
    let plot = frame.querySelector(".plot");
    if (plot === null) {
      frame.querySelector(".undrawn").remove();
      plot = frame.appendChild(document.createElement("div"));
      plot.className = "plot";
    }
    Plotly.react(plot, data, themed(layout), config);
  };

  const drawn = new Set();
  const show = (frame) => {
    if (!drawn.has(frame)) {
      drawn.add(frame);
      draw(frame);
    }
  };

  const frames = document.querySelectorAll(".timeline");
  const near = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => show(entry.target));
  }, { rootMargin: "600px" });
  frames.forEach((frame) => near.observe(frame));

  dark.addEventListener("change", () => drawn.forEach(draw));
  addEventListener("beforeprint", () => {
    frames.forEach(show);
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });
})();
