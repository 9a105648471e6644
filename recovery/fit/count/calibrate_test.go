package count

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// feed gives a model samples of a law, some of them wrong.
func feed(c *calibration, model string, scale, call float64, n int, wrong float64) {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	for range n {
		w := weight{text: 30 + int(math.Exp(r.Float64()*7)), calls: r.IntN(3)}
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
		feed(c, "m", tt.scale, tt.call, 60, tt.wrong)
		k := c.curve("m")
		if math.Abs(k.Scale/tt.scale-1) > tt.within {
			t.Errorf("learned %+v of %+v", k, tt)
		}
		if !c.curve("m").known() || c.curve("other").known() {
			t.Error("what is known is wrong")
		}
		if n := c.curve("m").tokens(weight{text: 10_000}); math.Abs(float64(n)/10_000/tt.scale-1) > tt.within {
			t.Errorf("10,000 tokens are %d", n)
		}
	}
}

func TestCalibrationStartsCarefully(t *testing.T) {
	c := newCalibration(10)
	if n := c.curve("m").tokens(weight{text: 500}); n != 500 {
		t.Errorf("500 tokens are %d", n)
	}
	c.learn("m", weight{text: 100}, 390, false)
	if k := c.curve("m"); k.Scale > 2.2 || c.curve("m").known() {
		t.Errorf("one sample made %+v", k)
	}
	// Nonsense is no sample.
	before := c.curve("m")
	for _, report := range []int{-500, 0, 10, 900_000} {
		c.learn("m", weight{text: 1000}, report, false)
	}
	c.learn("m", weight{text: 3}, 9, false)
	if c.curve("m") != before {
		t.Errorf("nonsense made %+v", c.curve("m"))
	}
}

// What a whole prompt says counts until differences are known.
func TestWholePromptsGiveWay(t *testing.T) {
	c := newCalibration(10)
	for range 6 {
		c.learn("m", weight{text: 20_000}, 30_000, true)
	}
	if k := c.curve("m"); k.Scale < 1.4 || !c.curve("m").known() {
		t.Errorf("whole prompts made %+v", k)
	}
	feed(c, "m", 1.1, 0, 10, 0)
	if k := c.curve("m"); math.Abs(k.Scale-1.1) > 0.05 {
		t.Errorf("differences made %+v", k)
	}
}

func TestCalibrationIsBounded(t *testing.T) {
	c := newCalibration(4)
	for i := range 10 {
		feed(c, "busy", 1.2, 0, 1, 0)
		feed(c, fmt.Sprint("model", i), 1.2, 0, 5, 0)
	}
	if c.models.Len() != 4 || !c.curve("busy").known() || !c.curve("model9").known() || c.curve("model0").known() {
		t.Errorf("%d models", c.models.Len())
	}
}
