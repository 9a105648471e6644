package memory

import (
	"context"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Charge charges all amounts or none.
func (s *Store) Charge(ctx context.Context, charges ...store.Charge) (store.Charged, error) {
	now, err := s.lock(ctx, store.CheckCharges(charges...))
	if err != nil {
		return store.Charged{}, err
	}
	defer s.mu.Unlock()
	done := store.Charged{Refused: -1, Used: make([]int64, len(charges)), Amounts: make([]int64, len(charges))}
	for i, c := range charges {
		it := s.table.findOrNew(id{account, c.Account}, now)
		used, holders := int64(0), 0
		if c.Holder != "" {
			used, holders = it.others(c, now)
		} else {
			used = it.meters[c.Meter].Used(c, now)
		}
		amount, fits := c.Fits(used)
		done.Used[i], done.Amounts[i], done.Holders = used+amount, amount, max(done.Holders, holders)
		if done.Refused < 0 && !fits {
			done.Refused = i
			if c.Holder == "" {
				done.Wait = it.meters[c.Meter].Wait(c, now)
			}
		}
	}
	if done.Refused >= 0 {
		return done, nil
	}
	for i, c := range charges {
		it := s.table.findOrNew(id{account, c.Account}, now)
		c.Amount = done.Amounts[i]
		it.charge(c, now)
		end := now.Add(2 * c.Window)
		if it.expires.After(end) {
			end = it.expires
		}
		s.table.put(it, overhead/2*(len(it.meters)+len(it.held)), end, now)
	}
	return done, nil
}

// others returns what other holders have of a charge's meter, and the number of
// holders with this one. It removes expired holders.
func (it *item) others(c store.Charge, now time.Time) (sum int64, holders int) {
	holders = 1
	for h, l := range it.held {
		switch {
		case !l.until.After(now):
			delete(it.held, h)
		case h.meter == c.Meter && h.holder != c.Holder:
			sum += l.amount
			holders++
		}
	}
	return sum, holders
}

func (it *item) charge(c store.Charge, now time.Time) {
	if it.meters == nil {
		it.meters, it.held = map[string]store.Tally{}, map[holderKey]heldAmount{}
	}
	if c.Holder == "" {
		it.meters[c.Meter] = it.meters[c.Meter].At(now, c.Window).Add(c.Amount)
		return
	}
	h := holderKey{c.Meter, c.Holder}
	if _, known := it.held[h]; known || len(it.held) < store.MaxHolders {
		it.held[h] = heldAmount{c.Amount, now.Add(c.Window)}
	}
}
