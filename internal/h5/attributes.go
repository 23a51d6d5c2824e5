package h5

// SetAttribute gives an object an attribute of the shape, a scalar without one. It
// replaces an attribute of that name.
func SetAttribute[T Element](f *File, path, name string, data []T, shape ...int) error {
	err := checkAttributeName(name)
	if err == nil {
		err = checkShape(shape)
	}
	if err == nil {
		err = checkCount(len(data), shape)
	}
	if err != nil {
		return f.wrap("write", path, name, err)
	}
	return f.on("write", path, name, true, func(o object) error {
		return f.change(func() error { return setAttribute(o, name, data, shape) })
	})
}

func setAttribute[T Element](o object, name string, data []T, shape []int) error {
	a, err := o.makeAttribute(name, element{t: typeOf[T]()}, shape)
	if err != nil {
		return err
	}
	return closing(a, func(a object) error { return put(a, data) })
}

// Attribute gives all elements of an attribute and its shape. Their type must be T.
func Attribute[T Element](f *File, path, name string) (data []T, shape []int, err error) {
	err = f.onAttribute(path, name, func(a object) (err error) {
		data, shape, err = get[T](f, a, false)
		return err
	})
	return data, shape, err
}

// AttributeAs is Attribute for elements of any type all values of which are values
// of T.
func AttributeAs[T Element](f *File, path, name string) (data []T, shape []int, err error) {
	err = f.onAttribute(path, name, func(a object) (err error) {
		data, shape, err = get[T](f, a, true)
		return err
	})
	return data, shape, err
}

func (f *File) onAttribute(path, name string, call func(object) error) error {
	if err := checkAttributeName(name); err != nil {
		return f.wrap("read", path, name, err)
	}
	return f.on("read", path, name, false, func(o object) error {
		there, err := o.hasAttribute(name)
		if err != nil {
			return err
		}
		if !there {
			return noAttribute
		}
		a, err := o.attribute(name)
		if err != nil {
			return err
		}
		return closing(a, call)
	})
}

// Attributes gives the names of an object's attributes in the order of their bytes.
func (f *File) Attributes(path string) ([]string, error) {
	var names []string
	err := f.on("list attributes", path, "", false, func(o object) (err error) {
		names, err = o.attributes()
		return err
	})
	return names, err
}

// HasAttribute reports whether an object, which must exist, has an attribute.
func (f *File) HasAttribute(path, name string) (bool, error) {
	if err := checkAttributeName(name); err != nil {
		return false, f.wrap("look for", path, name, err)
	}
	there := false
	err := f.on("look for", path, name, false, func(o object) (err error) {
		there, err = o.hasAttribute(name)
		return err
	})
	return there, err
}

// StatAttribute describes an attribute.
func (f *File) StatAttribute(path, name string) (Info, error) {
	var info Info
	err := f.onAttribute(path, name, func(a object) (err error) {
		info, err = a.info()
		return err
	})
	return info, err
}

// DeleteAttribute removes an attribute.
func (f *File) DeleteAttribute(path, name string) error {
	if err := checkAttributeName(name); err != nil {
		return f.wrap("delete", path, name, err)
	}
	return f.on("delete", path, name, true, func(o object) error {
		there, err := o.hasAttribute(name)
		if err != nil {
			return err
		}
		if !there {
			return noAttribute
		}
		return f.change(func() error { return o.deleteAttribute(name) })
	})
}
