package acp

import (
	"encoding/json"
	"strings"
)

// ContentBlock is one piece of a message: text, image, audio, resource_link or resource.
// One of another type keeps its JSON in Raw, which is written back as it came.
type ContentBlock struct {
	Type        string    `json:"type"`
	Text        string    `json:"text,omitempty"`
	Data        string    `json:"data,omitempty"` // base64, of an image or audio
	MimeType    string    `json:"mimeType,omitempty"`
	URI         string    `json:"uri,omitempty"`
	Name        string    `json:"name,omitempty"`
	Title       string    `json:"title,omitempty"`
	Description string    `json:"description,omitempty"`
	Resource    *Resource `json:"resource,omitempty"`
	Meta        Meta      `json:"_meta,omitempty"`

	Raw json.RawMessage `json:"-"`
}

// Resource is a file that came along: Text or Blob.
type Resource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	Blob     string `json:"blob,omitempty"`
}

// Types of content.
const (
	ContentText     = "text"
	ContentImage    = "image"
	ContentAudio    = "audio"
	ContentLink     = "resource_link"
	ContentResource = "resource"
)

// Text is a block of text.
func Text(s string) ContentBlock { return ContentBlock{Type: ContentText, Text: s} }

// UnmarshalJSON never fails for a block that is an object.
func (c *ContentBlock) UnmarshalJSON(b []byte) error {
	type plain ContentBlock
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		p = plain{}
		var head struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(b, &head) != nil {
			return err
		}
		p.Type = head.Type
	}
	*c = ContentBlock(p)
	c.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON writes what came as it came, and a text with its text though it be empty.
func (c ContentBlock) MarshalJSON() ([]byte, error) {
	if c.Raw != nil {
		return c.Raw, nil
	}
	if c.Type == ContentText {
		return json.Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
			Meta Meta   `json:"_meta,omitempty"`
		}{c.Type, c.Text, c.Meta})
	}
	type plain ContentBlock
	return json.Marshal(plain(c))
}

// Words is what a block says in text: its text, that of a resource, or the name and address
// of what cannot be shown.
func (c ContentBlock) Words() string {
	switch c.Type {
	case ContentText:
		return c.Text
	case ContentResource:
		if c.Resource == nil {
			return ""
		}
		if c.Resource.Text != "" {
			return c.Resource.Text
		}
		return c.Resource.URI
	case ContentLink:
		if c.Name == "" || c.Name == c.URI {
			return c.URI
		}
		return "[" + c.Name + "](" + c.URI + ")"
	case ContentImage, ContentAudio:
		return "[" + strings.TrimSpace(c.Type+" "+c.MimeType) + "]"
	}
	return ""
}

// Words joins what blocks say.
func Words(blocks []ContentBlock) string {
	var b strings.Builder
	for _, c := range blocks {
		b.WriteString(c.Words())
	}
	return b.String()
}
