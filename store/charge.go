package store

import (
	"fmt"
	"math"
	"time"
)

// Charge asks for an amount on one meter of an account.
//
// A meter counts what is charged in a window of time, or, where the charge has a
// holder, what all holders together have at the moment. A window slides: what
// was counted in the one before fades evenly while the next one lasts, so that
// no stretch of that length has much more than the limit.
type Charge struct {
	Account, Meter string
	// Amount is added; one below zero gives back what was charged too much. Of a
	// holder it is all that the holder has now, until Window has passed.
	Amount int64
	// Least makes do with less: where the limit does not leave Amount, what it leaves is
	// charged, if that is Least or more. Zero is Amount. It says nothing of a holder.
	Least int64
	// Limit is how much the meter may have, this amount included; zero is no
	// limit. What gives back is never refused.
	Limit int64
	// Share is the limit while the store's server is away and each process counts
	// alone; zero is Limit. Only Shared looks at it.
	Share int64
	// Alone is how much of Amount may be charged while the server is away, whatever was charged
	// before; below zero nothing may. Zero leaves that to Share. Only Shared looks at it.
	Alone int64
	// Window is how long an amount counts.
	Window time.Duration
	// Calendar makes the window begin anew, with nothing, at whole multiples of
	// its length since 1970: a day's at midnight, UTC.
	Calendar bool
	// Holder names who has the amount. A later charge of the same holder replaces it.
	Holder string
}

// Charged is what came of charges.
type Charged struct {
	// Refused is the first charge that its limit did not allow, by its place;
	// then nothing was charged. It is -1 where all was.
	Refused int
	// Wait is how long the refused charge would have to wait if nobody else
	// charged; zero where waiting does not help, and for holders.
	Wait time.Duration
	// Amounts are what was charged, of each: its Amount, or less where Least allows that.
	Amounts []int64
	// Used is what each meter has with its charge, or would have.
	Used []int64
	// Holders is the largest number of holders that a meter has.
	Holders int
	// Alone tells that the store's server was not asked: other processes count for themselves.
	Alone bool
}

// Fits is how much of a charge its limit allows where so much is used already; false is nothing.
func (c Charge) Fits(used int64) (int64, bool) {
	switch room := c.Limit - used; {
	case c.Limit <= 0 || c.Amount <= 0 || c.Amount <= room:
		return c.Amount, true
	case c.Holder == "" && c.Least > 0 && c.Least <= room:
		return room, true
	}
	return c.Amount, false
}

// ends returns when an amount that is charged now no longer counts.
func (c Charge) ends(now time.Time) time.Time {
	if !c.Calendar {
		return now.Add(c.Window)
	}
	size := c.Window.Microseconds()
	return time.UnixMicro((now.UnixMicro()/size + 1) * size)
}

// needs is the least amount that has to fit.
func (c Charge) needs() int64 {
	if c.Least > 0 {
		return min(c.Least, c.Amount)
	}
	return c.Amount
}

// Tally is what a meter has counted, in the window with the number Index and in
// the one before.
type Tally struct{ Index, Before, Now int64 }

// At is the tally as it stands at a moment. It does not go back.
func (t Tally) At(now time.Time, window time.Duration) Tally {
	switch i := now.UnixMicro() / window.Microseconds(); {
	case i == t.Index+1:
		return Tally{i, t.Now, 0}
	case i > t.Index:
		return Tally{Index: i}
	}
	return t
}

// Add is the tally with an amount more, or less: then first of this window.
func (t Tally) Add(n int64) Tally {
	t.Now = min(t.Now+n, MaxAmount)
	if t.Now < 0 {
		t.Before, t.Now = max(0, t.Before+t.Now), 0
	}
	return t
}

// Used is how much of the tally counts for a charge at a moment.
func (t Tally) Used(c Charge, now time.Time) int64 {
	t = t.At(now, c.Window)
	if c.Calendar {
		return t.Now
	}
	return t.Now + int64(math.Ceil(float64(t.Before)*(1-t.elapsed(c.Window, now))))
}

// elapsed is how much of the tally's window is over, from 0 to 1.
func (t Tally) elapsed(window time.Duration, now time.Time) float64 {
	size := window.Microseconds()
	return max(0, float64(now.UnixMicro()-t.Index*size)/float64(size))
}

// Wait is how long a charge must wait for its limit; see [Charged].
func (t Tally) Wait(c Charge, now time.Time) time.Duration {
	room := float64(c.Limit - c.needs())
	if room < 0 {
		return 0
	}
	t = t.At(now, c.Window)
	windows := 1 - t.elapsed(c.Window, now) // until the next begins
	switch {
	case c.Calendar:
	case room >= float64(t.Now): // what is left of the window before has to fade
		windows -= (room - float64(t.Now)) / float64(t.Before)
	default:
		windows += 1 - room/float64(t.Now)
	}
	return max(time.Millisecond, time.Duration(math.Ceil(min(windows, 2)*float64(c.Window))))
}

// CheckCharges reports charges that no store takes.
func CheckCharges(charges ...Charge) error {
	if len(charges) == 0 || len(charges) > MaxCharges {
		return fmt.Errorf("%w: %d charges at once, there must be 1 to %d", ErrInvalid, len(charges), MaxCharges)
	}
	for _, c := range charges {
		if err := CheckKeys(c.Account, c.Meter); err != nil {
			return err
		}
		switch {
		case len(c.Holder) > MaxKey:
			return fmt.Errorf("%w: a holder's name of %d bytes, the limit is %d", ErrInvalid, len(c.Holder), MaxKey)
		case c.Window < time.Millisecond || c.Window > MaxTTL/4:
			return fmt.Errorf("%w: a window of %v", ErrInvalid, c.Window)
		case c.Least < 0 || c.Least > MaxAmount:
			return fmt.Errorf("%w: a least amount of %d", ErrInvalid, c.Least)
		case c.Amount > MaxAmount || c.Amount < -MaxAmount || c.Holder != "" && c.Amount < 0:
			return fmt.Errorf("%w: an amount of %d", ErrInvalid, c.Amount)
		}
	}
	return nil
}
