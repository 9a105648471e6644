package count

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// learnSamples adds samples with a known scale and cost per call, a share of them wrong.
func learnSamples(c *calibration, model string, scale, call float64, n int, wrong float64) {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	for range n {
		w := tokenCount{text: 30 + int(math.Exp(r.Float64()*7)), calls: r.IntN(3)}
		report := scale*float64(w.text) + call*float64(w.calls) + 10*r.NormFloat64()
		if r.Float64() < wrong {
			report *= 0.4 + 2*r.Float64()
		}
		c.learn(model, w, int(report), false)
	}
}

func TestCalibrationLearns(t *testing.T) {
	for _, tt := range []struct{ scale, call, wrong, within float64 }{
		{1, 0, 0, 0.05}, {1.25, 20, 0, 0.05}, {0.8, 5, 0, 0.05}, {1.25, 20, 0.15, 0.06}, {2, 40, 0.15, 0.06},
	} {
		c := newCalibration(10)
		learnSamples(c, "m", tt.scale, tt.call, 60, tt.wrong)
		k := c.factor("m")
		if math.Abs(k.Scale/tt.scale-1) > tt.within {
			t.Errorf("learned %+v of %+v", k, tt)
		}
		if !c.factor("m").reliable() || c.factor("other").reliable() {
			t.Error("what is known is wrong")
		}
		if n := c.factor("m").apply(tokenCount{text: 10_000}); math.Abs(float64(n)/10_000/tt.scale-1) > tt.within {
			t.Errorf("10,000 tokens are %d", n)
		}
	}
}

func TestCalibrationStartsCarefully(t *testing.T) {
	c := newCalibration(10)
	if n := c.factor("m").apply(tokenCount{text: 500}); n != 500 {
		t.Errorf("500 tokens are %d", n)
	}
	c.learn("m", tokenCount{text: 100}, 390, false)
	if k := c.factor("m"); k.Scale > 2.2 || c.factor("m").reliable() {
		t.Errorf("one sample made %+v", k)
	}
	// Implausible reports are ignored.
	before := c.factor("m")
	for _, report := range []int{-500, 0, 10, 900_000} {
		c.learn("m", tokenCount{text: 1000}, report, false)
	}
	c.learn("m", tokenCount{text: 3}, 9, false)
	if c.factor("m") != before {
		t.Errorf("nonsense made %+v", c.factor("m"))
	}
}

// Samples of whole prompts count only until there are differences.
func TestWholePromptsGiveWay(t *testing.T) {
	c := newCalibration(10)
	for range 6 {
		c.learn("m", tokenCount{text: 20_000}, 30_000, true)
	}
	if k := c.factor("m"); k.Scale < 1.4 || !c.factor("m").reliable() {
		t.Errorf("whole prompts made %+v", k)
	}
	learnSamples(c, "m", 1.1, 0, 10, 0)
	if k := c.factor("m"); math.Abs(k.Scale-1.1) > 0.05 {
		t.Errorf("differences made %+v", k)
	}
}

func TestCalibrationIsBounded(t *testing.T) {
	c := newCalibration(4)
	for i := range 10 {
		learnSamples(c, "busy", 1.2, 0, 1, 0)
		learnSamples(c, fmt.Sprint("model", i), 1.2, 0, 5, 0)
	}
	if c.models.Len() != 4 || !c.factor("busy").reliable() || !c.factor("model9").reliable() || c.factor("model0").reliable() {
		t.Errorf("%d models", c.models.Len())
	}
}
