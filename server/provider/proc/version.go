package proc

import "fmt"

// OlderThan compares versions by their three leading numbers. One that cannot be read is
// taken as new, so that a development build is not shut out.
func OlderThan(version, minimum string) bool {
	var a, b [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &a[0], &a[1], &a[2]); n < 3 {
		return false
	}
	if n, _ := fmt.Sscanf(minimum, "%d.%d.%d", &b[0], &b[1], &b[2]); n < 3 {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
