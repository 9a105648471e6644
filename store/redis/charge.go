package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Charge charges all amounts or none.
func (s *Store) Charge(ctx context.Context, charges ...store.Charge) (store.Charged, error) {
	if err := store.CheckCharges(charges...); err != nil {
		return store.Charged{}, err
	}
	now := time.Now()
	keys := make([]string, len(charges))
	args := append(make([]any, 0, 3+7*len(charges)), micros(now), store.MaxHolders, store.MaxTTL.Microseconds())
	for i, c := range charges {
		keys[i] = s.prefix + "a:{accounts}" + c.Account // in a Cluster all accounts are on one node, to be charged together
		field, calendar := "m:"+c.Meter, "0"
		if c.Holder != "" {
			field = fmt.Sprintf("h:%d:%s:", len(c.Meter), c.Meter)
		}
		if c.Calendar {
			calendar = "1"
		}
		args = append(args, field, c.Holder, c.Amount, max(c.Limit, 0), c.Window.Microseconds(), calendar, c.Least)
	}
	out, err := s.runWrite(ctx, chargeScript, keys, args...)
	if err != nil {
		return store.Charged{}, err
	}
	return parseCharged(charges, byteStrings(out), now)
}

// parseCharged turns the reply of chargeScript into a Charged.
func parseCharged(charges []store.Charge, answer [][]byte, now time.Time) (store.Charged, error) {
	n := make([]int64, len(answer))
	for i, text := range answer {
		var err error
		if n[i], err = strconv.ParseInt(string(text), 10, 64); err != nil {
			n = nil
			break
		}
	}
	if len(n) != 1+3*len(charges) || n[0] < 0 || n[0] > int64(len(charges)) {
		return store.Charged{}, fmt.Errorf("%w: the answer to charges is malformed", store.ErrUnavailable)
	}
	done := store.Charged{Refused: int(n[0]) - 1, Used: make([]int64, len(charges)), Amounts: make([]int64, len(charges))}
	for i, c := range charges {
		a, b, count := n[1+3*i], n[2+3*i], n[3+3*i]
		if c.Holder != "" {
			done.Used[i], done.Amounts[i], done.Holders = a+c.Amount, c.Amount, max(done.Holders, int(b))
			continue
		}
		t := store.Tally{Index: a, Before: b, Now: count}
		used := t.Used(c, now)
		done.Amounts[i], _ = c.Fits(used)
		done.Used[i] = used + done.Amounts[i]
		if i == done.Refused {
			done.Wait = t.Wait(c, now)
		}
	}
	return done, nil
}
