// Less detail while frames come too slowly, such as where WebGL runs on the CPU.

const SLOW = 30; // milliseconds between frames above which a level is taken away
const FAST = 19; // below which one is given back
const WEIGHT = 0.15; // of the newest frame in the mean
const SETTLE = 12; // frames that a new level is given before it is judged
const RETRY = 4000; // milliseconds before a level that was too slow is tried again

/** `frame(now)` is called with the time of every frame and returns the level of detail, at most `levels`, at least 1. */
export function pace(levels) {
  let level = levels;
  let mean = 16;
  let frames = 0;
  let before = null;
  let lowered = -Infinity;
  return {
    frame(now) {
      if (before !== null) mean += (Math.min(now - before, 500) - mean) * WEIGHT;
      before = now;
      frames += 1;
      if (frames < SETTLE) return level;
      if (mean > SLOW && level > 1) {
        level -= 1;
        lowered = now;
        frames = 0;
        mean = SLOW;
      } else if (mean < FAST && level < levels && now - lowered > RETRY) {
        level += 1;
        frames = 0;
      }
      return level;
    },
  };
}
