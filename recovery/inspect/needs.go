package inspect

// ruleSet is a set of rules by their number, in the order of the tables.
type ruleSet [4]uint64

func (s *ruleSet) add(n int)      { s[n/64] |= 1 << (n % 64) }
func (s *ruleSet) has(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }

// entry is a text that some rules need.
type entry struct {
	text  string
	rules ruleSet
}

// needBuckets is the number of buckets for the first three bytes of a text, a power of two.
const needBuckets = 1 << 11

// needIndex finds, in one pass over a line, the rules of which it has a text
// that they need.
type needIndex struct {
	buckets [needBuckets][]entry
}

// needs is the index of all tables. It is read only.
var needs = indexNeeds(tables)

func needBucket(s string) int {
	return (int(s[0])*961 + int(s[1])*31 + int(s[2])) & (needBuckets - 1)
}

// indexNeeds builds the index. Texts have at least three bytes; a test holds that.
func indexNeeds(tables [][]rule) *needIndex {
	x, n := new(needIndex), 0
	for _, table := range tables {
		for i := range table {
			for _, text := range table[i].need {
				x.add(text, n)
			}
			n++
		}
	}
	return x
}

func (x *needIndex) add(text string, n int) {
	b := &x.buckets[needBucket(text)]
	for i := range *b {
		if (*b)[i].text == text {
			(*b)[i].rules.add(n)
			return
		}
	}
	e := entry{text: text}
	e.rules.add(n)
	*b = append(*b, e)
}

// find returns the rules that may match a line in lower case.
func (x *needIndex) find(low string) (found ruleSet) {
	for i := 0; i+3 <= len(low); i++ {
		for _, e := range x.buckets[needBucket(low[i:])] {
			if len(low)-i >= len(e.text) && low[i:i+len(e.text)] == e.text {
				for k := range found {
					found[k] |= e.rules[k]
				}
			}
		}
	}
	return found
}
