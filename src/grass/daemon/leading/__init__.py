"""A daemon whose broker shares its database with others: it leads, or stands by."""
